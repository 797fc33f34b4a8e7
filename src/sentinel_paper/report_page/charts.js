// Scales, ticks and axes of the charts.
"use strict";

const Charts = (() => {
    const { svg } = Dom;
    const BENT = { linear: (x) => x, log: (x) => Math.log10(x), root: (x) => Math.sqrt(Math.max(x, 0)) };

    // From numbers to pixels; what lies outside is put at the edge.
    function scale(kind, low, high, from, to) {
        const bend = BENT[kind];
        const [a, b] = [bend(low), bend(high)];
        return (x) => from + ((bend(Math.min(Math.max(x, low), high)) - a) / (b - a || 1)) * (to - from);
    }

    // Round numbers in a range, about as many as wanted.
    function ticks(kind, low, high, wanted) {
        if (kind === "log") return logTicks(low, high, wanted);
        const rough = (high - low) / Math.max(wanted, 1) || 1;
        const power = 10 ** Math.floor(Math.log10(rough));
        const step = [1, 2, 5, 10].map((part) => part * power).find((one) => one >= rough);
        const found = [];
        for (let i = Math.ceil(low / step - 1e-9); i * step <= high * (1 + 1e-9); i++) found.push(i * step);
        return found;
    }

    function logTicks(low, high, wanted) {
        for (const parts of [[1, 2, 5], [1, 3], [1]]) {
            const found = [];
            for (let e = Math.floor(Math.log10(low)); e <= Math.log10(high); e++)
                for (const part of parts) {
                    const tick = part * 10 ** e;
                    if (tick >= low && tick <= high) found.push(tick);
                }
            if (found.length <= wanted || parts.length === 1) return found;
        }
    }

    const tickText = (tick) => {
        if (tick >= 1000) return tick.toFixed(0).replace(/\B(?=(\d{3})+$)/g, "\u202f");
        return String(Number(tick.toPrecision(4)));
    };

    // Clear a chart and fill it with axes: returns both scales and the box of the plot.
    function axes(chart, x, y) {
        const [width, height] = [chart.clientWidth, chart.clientHeight];
        const box = { left: 52, right: width - 12, top: 26, bottom: height - 44 };
        chart.setAttribute("viewBox", `0 0 ${width} ${height}`);
        chart.replaceChildren();
        const across = scale(x.kind, x.low, x.high, box.left, box.right);
        const up = scale(y.kind, y.low, y.high, box.bottom, box.top);
        for (const tick of y.ticks || ticks(y.kind, y.low, y.high, 6))
            chart.append(
                svg("line", { x1: box.left, x2: box.right, y1: up(tick), y2: up(tick), class: "grid" }),
                svg("text", { x: box.left - 8, y: up(tick) + 4, "text-anchor": "end" }, tickText(tick)),
            );
        const most = x.kind === "log" && width >= 500 ? 10 : width < 500 ? 4 : 6;
        // From the right, so that the last one keeps its words.
        let free = Infinity;
        for (const tick of [...(x.ticks || ticks(x.kind, x.low, x.high, most))].reverse()) {
            const words = tickText(tick);
            const half = 3.6 * words.length;
            const at = Math.min(across(tick), width - half);
            if (at + half > free) continue;
            free = at - half - 6;
            chart.append(
                svg("line", { x1: across(tick), x2: across(tick), y1: box.bottom, y2: box.bottom + 5, class: "grid" }),
                svg("text", { x: at, y: box.bottom + 19, "text-anchor": "middle" }, words),
            );
        }
        chart.append(
            svg("line", { x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom, class: "grid" }),
            svg("text", { x: box.right, y: height - 6, "text-anchor": "end", class: "axis-name" }, x.name),
            svg("text", { x: 0, y: 12, class: "axis-name" }, y.name),
        );
        return { x: across, y: up, box };
    }

    return { axes };
})();
