// The page: draws its charts, makes its tables sortable, and opens what an address within the page leads to.
"use strict";

(() => {
    const numbers = Dom.data("numbers");

    const figure = document.getElementById("frontier");
    if (figure) Frontier.make(figure, numbers.frontier);

    // A chart is drawn when its place can be seen, also one in details that are opened later.
    for (const place of document.querySelectorAll("[data-charts]"))
        for (const chart of numbers.charts[place.dataset.charts]) place.append(Curves.make(chart));

    for (const table of document.querySelectorAll("table")) Tables.make(table);
    Claims.make(document.getElementById("claims"));
    Figures.watch(Dom.data("figures"));

    const contents = document.querySelector(".contents details");
    const wide = matchMedia("(min-width: 1100px)");
    const fold = () => {
        contents.open = wide.matches;
    };
    wide.addEventListener("change", fold);
    fold();

    // Details around the target of a link are opened.
    function reveal() {
        const target = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
        if (!target) return;
        for (let around = target; around; around = around.parentElement) if (around.tagName === "DETAILS") around.open = true;
        target.scrollIntoView();
    }
    addEventListener("hashchange", reveal);
    reveal();

    // The contents say where the reader is.
    const links = new Map([...document.querySelectorAll(".contents a")].map((link) => [link.hash.slice(1), link]));
    const heads = [...links.keys()].map((id) => document.getElementById(id));
    let waiting = false;
    function mark() {
        waiting = false;
        const passed = heads.filter((head) => head.getBoundingClientRect().top < innerHeight / 3);
        for (const link of links.values()) link.removeAttribute("aria-current");
        if (passed.length) links.get(passed[passed.length - 1].id).setAttribute("aria-current", "true");
    }
    addEventListener("scroll", () => {
        if (!waiting) requestAnimationFrame(mark);
        waiting = true;
    }, { passive: true });
    mark();
    document.body.dataset.ready = "true";
})();
