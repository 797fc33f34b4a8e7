// The charts of the page, as SVG: laws, the sum of a value, the timeline, what followed, and the map of decisions.
"use strict";

const Charts = (() => {
    const SPACE = "http://www.w3.org/2000/svg";

    // An SVG element with attributes, and texts or elements inside. Nothing is ever parsed as markup.
    function make(name, attributes = {}, ...inside) {
        const element = document.createElementNS(SPACE, name);
        for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
        element.append(...inside);
        return element;
    }

    const title = (text) => make("title", {}, text);

    // Clear a chart and give it the pixels of its place; returns its size.
    function open(svg, label) {
        const [width, height] = [svg.clientWidth || 300, svg.clientHeight || 46];
        svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
        svg.replaceChildren();
        if (label) svg.setAttribute("aria-label", label);
        return { width, height };
    }

    const scale = (low, high, from, to) => (x) => from + ((x - low) / (high - low || 1)) * (to - from);

    // The same, with what lies outside put at the edge.
    const within = (low, high, from, to) => {
        const place = scale(low, high, from, to);
        return (x) => place(Math.min(Math.max(x, low), high));
    };

    // Words under an axis, kept inside of the chart.
    function tickText(words, at, y, width) {
        const half = 3.4 * words.length;
        return make("text", { x: Math.min(Math.max(at, half), width - half), y, "text-anchor": "middle" }, words);
    }

    // A law as a curve over its atoms.
    function curve(atoms, probs, x, y) {
        let path = "";
        for (let j = 0; j < atoms.length; j++)
            path += `${j ? "L" : "M"}${x(atoms[j]).toFixed(1)} ${y(probs[j]).toFixed(1)}`;
        return path;
    }

    function below(atoms, probs, x, y, until) {
        const inside = [];
        for (let j = 0; j < atoms.length; j++) {
            if (atoms[j] <= until) inside.push([atoms[j], probs[j]]);
        }
        if (inside.length === 0) return "";
        const last = inside.length;
        if (last < atoms.length && inside.length) inside.push([atoms[last - 1] + 1e-9, probs[last - 1]]);
        const line = inside.map(([z, p]) => `L${x(z).toFixed(1)} ${y(p).toFixed(1)}`).join("");
        return `M${x(inside[0][0]).toFixed(1)} ${y(0)}${line}L${x(inside[inside.length - 1][0]).toFixed(1)} ${y(0)}Z`;
    }

    // K laws of one action, the part that the measure emphasises shaded, and where its mean and its value stand.
    function laws(svg, one, range) {
        const { width, height } = open(svg, one.label);
        const x = within(range.low, range.high, 2, width - 2);
        const up = scale(0, range.top, height - 7, 4);
        const y = (p) => Math.max(up(p), 2);
        const colour = `var(${one.colour})`;
        svg.append(make("line", { x1: 0, x2: width, y1: height - 7, y2: height - 7, class: "axis" }));
        for (const tick of one.ticks)
            svg.append(tickText(String(tick), x(tick), height + 9, width));
        if (one.until !== null) {
            svg.append(
                make("path", {
                    d: below(one.atoms, one.mixture, x, y, one.until),
                    fill: colour,
                    "fill-opacity": 0.32,
                    class: "tail",
                }),
            );
        }
        for (const [i, probs] of one.laws.entries()) {
            const opacity = 0.35 + 0.6 * Math.min(1, one.weights[i]);
            svg.append(
                make("path", {
                    d: curve(one.atoms, probs, x, y),
                    fill: "none",
                    stroke: colour,
                    "stroke-width": 1.4,
                    "stroke-opacity": opacity,
                }),
            );
        }
        const stick = (at, style, words) =>
            make("line", { x1: x(at), x2: x(at), y1: 3, y2: height - 7, ...style }, title(words));
        svg.append(
            stick(one.mean, { stroke: "var(--ink)", "stroke-dasharray": "2 3", "stroke-width": 1.2 }, one.meanWords),
            make(
                "path",
                { d: `M${x(one.value)} ${height - 8}l-4.500 7h9z`, fill: "var(--ink)" },
                title(one.valueWords),
            ),
        );
    }

    // mean - chance - ignorance = value: one bar from the mean down to the value, on one axis for all actions.
    function sum(svg, one, range) {
        const { width, height } = open(svg, one.label);
        const x = scale(range.low, range.high, 8, width - 8);
        const [middle, thick] = [height / 2, 13];
        const bar = (from, to, fill, words) =>
            make(
                "rect",
                {
                    x: Math.min(x(from), x(to)),
                    width: Math.max(Math.abs(x(to) - x(from)), 0.8),
                    y: middle - thick / 2,
                    height: thick,
                    fill,
                },
                title(words),
            );
        const additive = one.mean - one.chance;
        svg.append(
            make("line", {
                x1: x(range.best),
                x2: x(range.best),
                y1: 0,
                y2: height,
                stroke: "var(--line)",
                "stroke-width": 1.5,
            }),
            bar(additive, one.mean, "var(--chance)", one.chanceWords),
            bar(one.value, additive, "var(--ignorance)", one.ignoranceWords),
            make(
                "line",
                {
                    x1: x(one.mean),
                    x2: x(one.mean),
                    y1: middle - 11,
                    y2: middle + 11,
                    stroke: "var(--ink)",
                    "stroke-width": 1.2,
                    "stroke-dasharray": "2 3",
                },
                title(one.meanWords),
            ),
            make(
                "circle",
                {
                    cx: x(one.value),
                    cy: middle,
                    r: 5.5,
                    fill: `var(${one.colour})`,
                    stroke: "var(--card)",
                    "stroke-width": 1.5,
                },
                title(one.valueWords),
            ),
        );
    }

    // A value without laws: a dot, and as whiskers the standard deviations that the agent tells.
    function estimate(svg, one, range) {
        const { width, height } = open(svg, one.label);
        const x = scale(range.low, range.high, 10, width - 10);
        const middle = height / 2;
        svg.append(make("line", { x1: 0, x2: width, y1: middle, y2: middle, class: "axis" }));
        for (const [i, spread] of one.spreads.entries()) {
            const at = {
                y1: middle + 9 * (i ? 1 : -1),
                y2: middle + 9 * (i ? 1 : -1),
                stroke: i ? "var(--chance)" : "var(--ignorance)",
                "stroke-width": 4,
            };
            svg.append(
                make(
                    "line",
                    { x1: x(spread.centre - spread.sd), x2: x(spread.centre + spread.sd), ...at },
                    title(spread.words),
                ),
            );
        }
        svg.append(
            make(
                "circle",
                {
                    cx: x(one.value),
                    cy: middle,
                    r: 5.5,
                    fill: `var(${one.colour})`,
                    stroke: "var(--card)",
                    "stroke-width": 1.5,
                },
                title(one.valueWords),
            ),
        );
    }

    const SHAPES = {
        flip: (x, y) => make("path", { d: `M${x} ${y - 5}l5 5l-5 5l-5-5z`, fill: "var(--ink)" }),
        near: (x, y) =>
            make("path", {
                d: `M${x} ${y - 5}l5.500 9.500h-11z`,
                fill: "none",
                stroke: "var(--ink)",
                "stroke-width": 1.6,
            }),
        crash: (x, y) =>
            make("path", {
                d: `M${x - 5} ${y - 5}l10 10M${x + 5} ${y - 5}l-10 10`,
                stroke: "var(--ignorance)",
                "stroke-width": 3,
            }),
        end: (x, y) => make("circle", { cx: x, cy: y, r: 4, fill: "none", stroke: "var(--ink)", "stroke-width": 1.6 }),
    };

    // Per decision the two penalties of the action taken, the action preferred now, and marks to jump to.
    function timeline(svg, line) {
        const { width, height } = open(svg, line.label);
        const [left, right, top, strip] = [8, 8, 20, 9];
        const step = (width - left - right) / line.length;
        const floor = height - strip - 4;
        const gap = step > 5 ? 1.5 : 0;
        const lane = (floor - top) / Math.max(line.lanes.length, 1);
        for (const [i, { numbers, most, fill }] of line.lanes.entries()) {
            const [foot, y] = [top + (i + 1) * lane, scale(0, most || 1, 0, lane - 3)];
            svg.append(make("line", { x1: left, x2: width - right, y1: foot, y2: foot, class: "axis" }));
            numbers.forEach((number, t) => {
                if (number <= 0) return;
                const bar = {
                    x: left + t * step + gap / 2,
                    width: Math.max(step - gap, 0.5),
                    y: foot - y(number),
                    height: y(number),
                };
                svg.append(make("rect", { ...bar, fill }));
            });
        }
        for (let t = 0; t < line.length; t++) {
            const x = left + t * step;
            const bar = { x: x + gap / 2, width: Math.max(step - gap, 0.5) };
            svg.append(
                make("rect", {
                    ...bar,
                    y: floor + 4,
                    height: strip - 2,
                    fill: `var(${line.colours[line.preferred[t]]})`,
                    class: "preferred",
                }),
            );
            if (line.preferred[t] !== line.taken[t]) {
                svg.append(
                    make("rect", {
                        x: x + step / 2 - 1.5,
                        width: 3,
                        y: floor + 4,
                        height: strip - 2,
                        fill: "var(--ink)",
                        class: "otherwise",
                    }),
                );
            }
        }
        for (const mark of line.marks) {
            const shape = SHAPES[mark.kind](left + (mark.t + 0.5) * step, 10);
            shape.append(title(mark.words));
            svg.append(shape);
        }
        const now = left + (line.now + line.phase) * step;
        svg.append(
            make("line", {
                x1: now,
                x2: now,
                y1: 0,
                y2: height,
                stroke: "var(--ink)",
                "stroke-width": 2,
                id: "playhead",
            }),
        );
        return { left, step };
    }

    // The mixture that was predicted for the action taken, and the return that really followed.
    function outcome(svg, one, range) {
        const { width, height } = open(svg, one.label);
        const x = within(range.low, range.high, 6, width - 6);
        let most = 0;
        for (const p of one.mixture) most = Math.max(most, p);
        const y = scale(0, most * 1.15 || 1, height - 20, 8);
        svg.append(
            make("path", {
                d: `M${x(one.atoms[0])} ${y(0)}${curve(one.atoms, one.mixture, x, y).replace("M", "L")}L${x(one.atoms[one.atoms.length - 1])} ${y(0)}Z`,
                fill: `var(${one.colour})`,
                "fill-opacity": 0.28,
            }),
            make("path", {
                d: curve(one.atoms, one.mixture, x, y),
                fill: "none",
                stroke: `var(${one.colour})`,
                "stroke-width": 1.6,
            }),
            make("line", { x1: 0, x2: width, y1: y(0), y2: y(0), class: "axis" }),
        );
        for (const tick of range.ticks) {
            svg.append(tickText(String(tick), x(tick), height - 5, width));
        }
        if (one.realised !== null) {
            const at = x(one.realised);
            const side = at > width * 0.7 ? "end" : "start";
            svg.append(
                make("line", { x1: at, x2: at, y1: 2, y2: y(0), stroke: "var(--ink)", "stroke-width": 2 }),
                make(
                    "text",
                    { x: at + (side === "end" ? -6 : 6), y: 12, "text-anchor": side, class: "strong" },
                    one.words,
                ),
            );
        }
    }

    // How often the return fell into each tenth of the law that was predicted; even bars are a calibrated agent.
    function calibration(svg, shares, label) {
        const { width, height } = open(svg, label);
        const [floor, step] = [height - 18, (width - 8) / shares.length];
        const y = scale(0, Math.max(0.3, ...shares), 0, floor - 6);
        shares.forEach((part, i) => {
            svg.append(
                make("rect", {
                    x: 4 + i * step + 1,
                    width: step - 2,
                    y: floor - y(part),
                    height: y(part),
                    rx: 2,
                    fill: "var(--chance)",
                }),
            );
        });
        const even = floor - y(1 / shares.length);
        svg.append(
            make("line", { x1: 4, x2: width - 4, y1: even, y2: even, stroke: "var(--ink)", "stroke-dasharray": "3 3" }),
            make("text", { x: 4, y: height - 4 }, "worse than predicted"),
            make("text", { x: width - 4, y: height - 4, "text-anchor": "end" }, "better"),
        );
    }

    // The action that wins at every pair of parameters: cells [size x size], from the lower left corner.
    function map(canvas, over, cells, size, point, axes, labels, colours) {
        canvas.width = size;
        canvas.height = size;
        const context = canvas.getContext("2d");
        const parsed = colours.map((name) => Dom.colour(name));
        const places = new Map();
        for (let row = 0; row < size; row++) {
            for (let column = 0; column < size; column++) {
                const action = cells[row * size + column];
                context.fillStyle = parsed[action];
                context.fillRect(column, size - 1 - row, 1, 1);
                const place = places.get(action) || { count: 0, x: 0, y: 0, rows: new Set() };
                places.set(action, {
                    count: place.count + 1,
                    x: place.x + column,
                    y: place.y + row,
                    rows: place.rows.add(row),
                });
            }
        }
        const { width, height } = open(over);
        const x = (part) => 30 + part * (width - 30);
        const y = (part) => (1 - part) * (height - 26);
        for (const [action, place] of places) {
            if (place.count < 0.05 * size * size) continue;
            const [cx, cy] = [x((place.x / place.count + 0.5) / size), y((place.y / place.count + 0.5) / size)];
            const at = { x: Math.min(Math.max(cx, 76), width - 46), y: cy + 4 };
            if (point && Math.abs(x(point.x) - at.x) < 60 && Math.abs(y(point.y) - cy) < 18)
                at.y = y(point.y) + (y(point.y) > 40 ? -16 : 25);
            const wide = (place.count / place.rows.size / size) * (width - 30) > 8 * labels[action].length + 8;
            const style = { "text-anchor": "middle", class: "region", fill: Dom.onto(colours[action]) };
            over.append(
                make(
                    "text",
                    { ...(wide ? at : { ...at, x: cx }), ...style },
                    wide ? labels[action] : String(action + 1),
                ),
            );
        }
        over.append(
            make("text", { x: 30, y: height - 8 }, axes.x.low),
            make("text", { x: width, y: height - 8, "text-anchor": "end" }, axes.x.high),
            make("text", { x: 30 + (width - 30) / 2, y: height - 8, "text-anchor": "middle" }, axes.x.name),
            make("text", { x: 24, y: height - 28, "text-anchor": "end" }, axes.y.low),
            make("text", { x: 24, y: 10, "text-anchor": "end" }, axes.y.high),
            make(
                "text",
                { transform: `translate(14 ${(height - 26) / 2}) rotate(-90)`, "text-anchor": "middle" },
                axes.y.name,
            ),
        );
        if (point) {
            over.append(
                make("circle", {
                    cx: x(point.x),
                    cy: y(point.y),
                    r: 8,
                    fill: "#fff",
                    stroke: "#111",
                    "stroke-width": 3,
                }),
            );
        }
        return places;
    }

    // A mark by itself, for a legend.
    function sign(kind) {
        const svg = make("svg", { viewBox: "0 0 14 14", "aria-hidden": "true" });
        const square = (fill) => make("rect", { x: 1, y: 1, width: 12, height: 12, rx: 3, fill });
        const squares = { chance: "var(--chance)", ignorance: "var(--ignorance)" };
        svg.append(squares[kind] ? square(squares[kind]) : SHAPES[kind](7, 7));
        return svg;
    }

    return { make, sign, laws, sum, estimate, timeline, outcome, calibration, map };
})();
