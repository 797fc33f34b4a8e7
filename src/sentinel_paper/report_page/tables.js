// Tables that are sorted by a click on a column's head: up, down, and back to the order of the page.
"use strict";

const Tables = (() => {
    const number = (text) => parseFloat(text.replace(/\u2212/g, "-").replace(/^[^-+.0-9]*/, ""));

    function compare(a, b) {
        const [x, y] = [number(a), number(b)];
        if (Number.isNaN(x) && Number.isNaN(y)) return a.localeCompare(b);
        if (Number.isNaN(x)) return 1;
        return Number.isNaN(y) ? -1 : x - y;
    }

    // Rows of a plain table; of the claims, whose details follow in a second row, their bodies.
    const parts = (table) => (table.tBodies.length > 1 ? [...table.tBodies] : [...table.tBodies[0].rows]);
    const firstRow = (part) => (part.rows ? part.rows[0] : part);

    function make(table) {
        const order = parts(table);
        const home = order[0].parentNode;
        for (const head of table.tHead.rows[0].cells) {
            const button = document.createElement("button");
            button.type = "button";
            button.append(...head.childNodes);
            head.append(button);
            button.addEventListener("click", () => {
                const next = { ascending: "descending", descending: null }[head.getAttribute("aria-sort")];
                for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
                const way = next === undefined ? "ascending" : next;
                if (way === null) return home.append(...order);
                head.setAttribute("aria-sort", way);
                const key = (part) => firstRow(part).cells[head.cellIndex].textContent.trim();
                const sign = way === "ascending" ? 1 : -1;
                return home.append(...[...order].sort((a, b) => sign * compare(key(a), key(b))));
            });
        }
    }

    return { make };
})();
