// What all parts of the page use: elements, colours of the present scheme, and canvases in the pixels of the screen.
"use strict";

const Dom = (() => {
    const get = (id) => document.getElementById(id);

    // An element with a text, which is never parsed as markup.
    function element(name, style, text = "") {
        const made = document.createElement(name);
        made.className = style;
        made.textContent = text;
        return made;
    }

    // A colour that can be read on another.
    function onto(name) {
        const text = colour(name).replace("#", "");
        const [r, g, b] = [0, 2, 4].map((i) => parseInt(text.slice(i, i + 2), 16));
        return 0.299 * r + 0.587 * g + 0.114 * b > 140 ? "#12161c" : "#ffffff";
    }

    const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

    // Fit a canvas to its place, in the pixels of the screen; returns its context in CSS pixels.
    function fit(canvas, height) {
        const ratio = window.devicePixelRatio || 1;
        const width = canvas.clientWidth;
        const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
        if (canvas.width !== w || canvas.height !== h) {
            canvas.width = w;
            canvas.height = h;
            canvas.style.height = `${height}px`;
        }
        const context = canvas.getContext("2d");
        context.setTransform(ratio, 0, 0, ratio, 0, 0);
        context.clearRect(0, 0, width, height);
        return { context, width, height };
    }

    function draggable(target, move) {
        target.addEventListener("pointerdown", (event) => {
            target.setPointerCapture(event.pointerId);
            move(event);
        });
        target.addEventListener("pointermove", (event) => {
            if (target.hasPointerCapture(event.pointerId)) move(event);
        });
    }

    return { get, element, colour, onto, fit, draggable };
})();
