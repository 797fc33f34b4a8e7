// What all parts of the page use: elements of HTML and SVG with texts, which are never parsed as markup, and numbers.
"use strict";

const Dom = (() => {
    const SPACE = "http://www.w3.org/2000/svg";

    function element(name, style = "", ...inside) {
        const made = document.createElement(name);
        if (style) made.className = style;
        made.append(...inside);
        return made;
    }

    function svg(name, attributes = {}, ...inside) {
        const made = document.createElementNS(SPACE, name);
        for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
        made.append(...inside);
        return made;
    }

    // A block of JSON of the page.
    const data = (id) => JSON.parse(document.getElementById(id).textContent);

    const shade = (name) => `var(--${name})`;

    const told = (number, digits) => number.toFixed(digits).replace("-", "\u2212");

    // About four digits of a number.
    function rounded(number) {
        const size = Math.abs(number);
        return told(number, size >= 1000 ? 0 : size >= 100 ? 1 : size >= 1 || size === 0 ? 2 : 4);
    }

    // A mean with its interval, as the tables have them.
    const interval = (ends, digits) => {
        const [mean, low, high] = ends.map((end) => told(end, digits));
        return `${mean} [${low}, ${high}]`;
    };

    // Draw again whenever the place of a chart has another width, and once at first.
    function whenSized(place, draw) {
        let width = 0;
        new ResizeObserver(() => {
            if (place.clientWidth === width || place.clientWidth === 0) return;
            width = place.clientWidth;
            draw();
        }).observe(place);
    }

    return { element, svg, data, shade, told, rounded, interval, whenSized };
})();
