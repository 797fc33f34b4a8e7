// Learning curves with their intervals: the pointer, a finger or the arrow keys choose a step, the list has its values.
"use strict";

const Curves = (() => {
    const { element, svg, shade, rounded, whenSized } = Dom;

    const path = (points) => `M${points.map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`).join("L")}`;

    function make(chart) {
        const steps = [...new Set(chart.lines.flatMap((line) => line.points.map((point) => point[0])))].sort((a, b) => a - b);
        const numbers = chart.lines.flatMap((line) => line.points.flatMap((point) => point.slice(1)));
        const least = Math.min(...numbers.filter((one) => !chart.log || one > 0));
        const low = chart.log ? least / 1.2 : Math.min(least, 0);
        const y = { kind: chart.log ? "log" : "linear", low, high: Math.max(...numbers) * (chart.log ? 1.2 : 1.05), name: chart.quantity };
        const x = { kind: chart.log ? "root" : "linear", low: chart.log ? steps[0] : 0, high: steps[steps.length - 1], name: chart.across };
        if (steps.length < 12) x.ticks = steps;

        const drawing = svg("svg", {
            tabindex: 0,
            role: "slider",
            "aria-label": `${chart.title}: ${chart.across}`,
            "aria-valuemin": steps[0],
            "aria-valuemax": steps[steps.length - 1],
        });
        const at = element("p", "at");
        const list = element("ul", "lines");
        const lines = chart.lines.map((line) => {
            const values = element("span", "numbers");
            const item = element("li", "", element("span", `swatch ${line.colour}`), element("span", "", line.agent), values);
            list.append(item);
            return { ...line, values, item, by: new Map(line.points.map((point) => [point[0], point])) };
        });
        const plot = element("div", "plot", drawing);
        const place = element("div", "curves", element("h3", "", chart.title), plot, element("div", "read", at, list));
        let [now, scales, marks] = [steps.length - 1, null, null];

        function choose(index) {
            now = Math.min(Math.max(index, 0), steps.length - 1);
            const step = steps[now];
            at.textContent = `after ${step} ${chart.across}: mean [95 % interval]`;
            const words = [];
            for (const line of lines) {
                const point = line.by.get(step);
                line.values.replaceChildren(
                    ...(point
                        ? [rounded(point[1]), element("small", "", ` [${rounded(point[2])}, ${rounded(point[3])}]`)]
                        : ["\u2013"]),
                );
                if (point) words.push(`${line.agent} ${rounded(point[1])}`);
            }
            drawing.setAttribute("aria-valuenow", step);
            drawing.setAttribute("aria-valuetext", `${step} ${chart.across}: ${words.join(", ")}`);
            if (!scales) return;
            const left = scales.x(step);
            marks.replaceChildren(
                svg("line", { x1: left, x2: left, y1: scales.box.top, y2: scales.box.bottom, class: "guide" }),
            );
            for (const line of lines) {
                const point = line.by.get(step);
                if (!point) continue;
                const dot = { cx: left, cy: scales.y(point[1]), r: 3.8, fill: shade(line.colour), stroke: "var(--card)" };
                marks.append(svg("circle", dot));
            }
        }

        function draw() {
            scales = Charts.axes(drawing, x, y);
            for (const line of lines) {
                const [upper, lower] = [3, 2].map((end) => line.points.map((p) => [scales.x(p[0]), scales.y(p[end])]));
                line.group = svg(
                    "g",
                    {},
                    svg("path", { d: `${path([...upper, ...lower.reverse()])}Z`, fill: shade(line.colour), opacity: 0.18 }),
                    svg("path", {
                        d: path(line.points.map((p) => [scales.x(p[0]), scales.y(p[1])])),
                        fill: "none",
                        stroke: shade(line.colour),
                        "stroke-width": 2,
                        "stroke-linejoin": "round",
                    }),
                );
                drawing.append(line.group);
            }
            marks = svg("g", { "aria-hidden": "true" });
            drawing.append(marks);
            choose(now);
        }

        function point(event) {
            if (!scales) return;
            const left = event.clientX - drawing.getBoundingClientRect().left;
            const away = steps.map((step) => Math.abs(scales.x(step) - left));
            choose(away.indexOf(Math.min(...away)));
        }
        drawing.addEventListener("pointermove", point);
        drawing.addEventListener("pointerdown", point);
        drawing.addEventListener("pointerleave", () => choose(steps.length - 1));
        drawing.addEventListener("keydown", (event) => {
            const jumps = { ArrowRight: now + 1, ArrowUp: now + 1, ArrowLeft: now - 1, ArrowDown: now - 1, Home: 0, End: steps.length - 1 };
            if (!(event.key in jumps)) return;
            event.preventDefault();
            choose(jumps[event.key]);
        });
        // Who points at a name sees its curve alone.
        for (const line of lines) {
            const dim = (on) => lines.forEach((other) => other.group && other.group.classList.toggle("dimmed", on && other !== line));
            line.item.addEventListener("pointerenter", () => dim(true));
            line.item.addEventListener("pointerleave", () => dim(false));
        }
        choose(now);
        whenSized(plot, draw);
        return place;
    }

    return { make };
})();
