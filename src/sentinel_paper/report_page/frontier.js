// The figure that the page begins with: value against crashes in training, a point with both intervals per agent.
"use strict";

const Frontier = (() => {
    const { element, svg, shade, told, interval, whenSized } = Dom;
    const NEAR = 26;

    const polygon = (corners, attributes) =>
        svg("path", { d: `M${corners.map(([x, y]) => `${x} ${y}`).join("L")}Z`, ...attributes });

    // A mark around the origin; presets have a shape each, in their order.
    function mark(kind, place, colour) {
        const full = { fill: shade(colour), stroke: "var(--card)", "stroke-width": 1.2 };
        const hollow = { fill: "var(--card)", stroke: shade(colour), "stroke-width": 2 };
        if (kind === "paper") return polygon([[0, -6.5], [6.5, 0], [0, 6.5], [-6.5, 0]], hollow);
        if (kind === "passive")
            return svg("path", { d: "M-5 -5L5 5M5 -5L-5 5", stroke: shade(colour), "stroke-width": 2.6, fill: "none" });
        if (kind === "learner") {
            const corners = Array.from({ length: 10 }, (_, i) => {
                const [r, a] = [i % 2 ? 4 : 9, (Math.PI * i) / 5];
                return [(r * Math.sin(a)).toFixed(2), (-r * Math.cos(a)).toFixed(2)];
            });
            return polygon(corners, full);
        }
        const shapes = [
            () => svg("circle", { r: 6, ...full }),
            () => polygon([[-5, -5], [5, -5], [5, 5], [-5, 5]], full),
            () => polygon([[0, -7], [6.5, 5], [-6.5, 5]], full),
        ];
        return shapes[place % shapes.length]();
    }

    // Places for a name beside its point, the best first; the last ones are joined to it by a line.
    const BESIDE = [
        [11, 4, "start"],
        [-11, 4, "end"],
        [0, -12, "middle"],
        [0, 21, "middle"],
        [9, -9, "start"],
        [-9, -9, "end"],
        [9, 17, "start"],
        [-9, 17, "end"],
        [26, 22, "start"],
        [-26, 22, "end"],
        [26, -18, "start"],
        [-26, -18, "end"],
        [26, 38, "start"],
        [-26, 38, "end"],
    ];
    const JOINED = 8;

    const apart = ([l, t, r, b], [L, T, R, B]) => r < L || l > R || b < T || t > B;

    function names(chart, drawn, box, ceiling) {
        const areas = new Map(drawn.map((one) => [one, [one.at[0] - 8, one.at[1] - 8, one.at[0] + 8, one.at[1] + 8]]));
        const taken = [[box.left, ceiling - 18, box.right, ceiling]];
        const order = ["learner", "paper", "passive", "preset"];
        const sorted = [...drawn].sort((a, b) => order.indexOf(a.group.kind) - order.indexOf(b.group.kind));
        for (const one of sorted) {
            const text = svg("text", { class: "name" }, one.point.agent);
            chart.append(text);
            const length = text.getComputedTextLength();
            const places = BESIDE.map(([dx, dy, anchor], i) => {
                const [x, y] = [one.at[0] + dx, one.at[1] + dy];
                const left = anchor === "start" ? x : anchor === "end" ? x - length : x - length / 2;
                return { x, y, anchor, joined: i >= JOINED, area: [left - 1, y - 11, left + length + 1, y + 3] };
            });
            // Lines to the many points of presets would hide more than they say.
            const fits = ({ area, joined }) =>
                !(joined && one.group.kind === "preset") &&
                area[0] >= box.left &&
                area[2] <= box.right &&
                area[3] <= box.bottom &&
                taken.every((other) => apart(area, other)) &&
                drawn.every((other) => other === one || apart(area, areas.get(other)));
            const free = places.find(fits);
            if (!free) {
                text.remove();
                continue;
            }
            taken.push(free.area);
            for (const key of ["x", "y"]) text.setAttribute(key, free[key]);
            text.setAttribute("text-anchor", free.anchor);
            if (free.joined)
                text.before(
                    svg("line", { x1: one.at[0], y1: one.at[1], x2: free.x, y2: free.y - 4, class: "leader" }),
                );
        }
    }

    function sentence(group, point) {
        return `${point.agent}, ${group.words}: value ${interval(point.value, 2)}, crashes in training ${interval(point.crashes, 1)}`;
    }

    function make(figure, data) {
        const presets = data.groups.filter((group) => group.kind === "preset");
        const hidden = new Set();
        const chart = svg("svg", { role: "group", "aria-label": "Value against crashes in training, one point per agent" });
        const tip = element("div", "tip");
        tip.setAttribute("role", "status");
        tip.hidden = true;
        const plot = element("div", "plot", chart, tip);
        const legend = element("ul", "legend");
        let drawn = [];

        for (const group of data.groups) {
            const sign = svg("svg", { viewBox: "-10 -10 20 20", "aria-hidden": "true" }, mark(group.kind, presets.indexOf(group), "ink"));
            const button = element("button", "", sign, group.words);
            button.type = "button";
            button.setAttribute("aria-pressed", "true");
            button.addEventListener("click", () => {
                hidden[hidden.has(group) ? "delete" : "add"](group);
                button.setAttribute("aria-pressed", String(!hidden.has(group)));
                draw();
            });
            legend.append(element("li", "", button));
        }
        const shades = new Map();
        for (const group of data.groups)
            for (const point of group.points)
                if (group.kind !== "passive" && !shades.has(point.colour)) shades.set(point.colour, point.agent.split(",")[0]);
        const colours = element("ul", "shades");
        for (const [colour, agent] of shades) colours.append(element("li", "", element("span", `swatch ${colour}`), agent));

        function show(one) {
            for (const other of drawn) other.node.classList.toggle("near", other === one);
            tip.hidden = !one;
            if (!one) return;
            const { point, group } = one;
            tip.replaceChildren(
                element("strong", "", point.agent),
                element("div", "", group.words),
                element("div", "", `value ${interval(point.value, 2)}`),
                element("div", "", `crashes ${interval(point.crashes, 1)}`),
            );
            const [x, y] = one.at;
            const left = Math.min(Math.max(x - tip.offsetWidth / 2, 0), plot.clientWidth - tip.offsetWidth);
            tip.style.left = `${left}px`;
            tip.style.top = `${y - tip.offsetHeight - 16 > -30 ? y - tip.offsetHeight - 16 : y + 18}px`;
        }

        function nearest(event) {
            const frame = chart.getBoundingClientRect();
            const [x, y] = [event.clientX - frame.left, event.clientY - frame.top];
            let best = null;
            for (const one of drawn) {
                const away = Math.hypot(one.at[0] - x, one.at[1] - y);
                if (away < NEAR && (!best || away < best.away)) best = { one, away };
            }
            return best && best.one;
        }

        function draw() {
            const shown = data.groups.filter((group) => !hidden.has(group));
            const points = data.groups.flatMap((group) => group.points);
            const crashes = points.flatMap((point) => point.crashes).filter((x) => x > 0);
            const values = points.flatMap((point) => point.value);
            const low = Math.max(Math.min(...crashes), 1);
            const { x, y, box } = Charts.axes(
                chart,
                { kind: "log", low: low / 1.6, high: Math.max(...crashes) * 1.5, name: "crashes in training (log scale, fewer is better)" },
                {
                    kind: "linear",
                    low: Math.floor(Math.min(...values) - 1),
                    high: Math.max(data.ceiling, ...values) + 1.2,
                    name: "value of the frozen policy (higher is better)",
                },
            );
            const top = y(data.ceiling);
            chart.append(
                svg("line", { x1: box.left, x2: box.right, y1: top, y2: top, class: "ceiling" }),
                svg(
                    "text",
                    { x: box.right, y: top - 6, "text-anchor": "end", class: "name ceiling-name" },
                    `${told(data.ceiling, 2)}: a search with the exact model`,
                ),
            );
            drawn = shown.flatMap((group) =>
                group.points.map((point) => ({ group, point, at: [x(point.crashes[0]), y(point.value[0])] })),
            );
            drawn.sort((a, b) => a.at[0] - b.at[0]);
            for (const one of drawn) {
                const { point, group, at } = one;
                const bar = { stroke: shade(point.colour), "stroke-width": 1.5, opacity: 0.55 };
                one.node = svg(
                    "g",
                    { class: "point", tabindex: -1, role: "img", "aria-label": sentence(group, point) },
                    svg("line", { x1: x(point.crashes[1]), x2: x(point.crashes[2]), y1: at[1], y2: at[1], ...bar }),
                    svg("line", { x1: at[0], x2: at[0], y1: y(point.value[1]), y2: y(point.value[2]), ...bar }),
                    svg(
                        "g",
                        { transform: `translate(${at[0]} ${at[1]})` },
                        svg("circle", { r: 11, class: "ring" }),
                        mark(group.kind, presets.indexOf(group), point.colour),
                    ),
                );
                one.node.addEventListener("focus", () => show(one));
                one.node.addEventListener("blur", () => show(null));
                chart.append(one.node);
            }
            if (drawn.length) drawn[0].node.setAttribute("tabindex", 0);
            names(chart, drawn, box, top);
            show(null);
        }

        chart.addEventListener("pointermove", (event) => show(nearest(event)));
        chart.addEventListener("pointerdown", (event) => show(nearest(event)));
        chart.addEventListener("pointerleave", () => show(null));
        // One stop of the Tab key for all points; arrows lead from one to the next.
        chart.addEventListener("keydown", (event) => {
            const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
            const now = drawn.findIndex((one) => one.node === document.activeElement);
            if (!step || now < 0) return;
            event.preventDefault();
            const next = drawn[(now + step + drawn.length) % drawn.length];
            drawn[now].node.setAttribute("tabindex", -1);
            next.node.setAttribute("tabindex", 0);
            next.node.focus();
        });
        figure.prepend(plot, legend, colours);
        whenSized(plot, draw);
    }

    return { make };
})();
