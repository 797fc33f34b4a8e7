// Figures of results are images: their SVG is unpacked when it is looked at, and becomes the source of an image, in
// which no script runs.
"use strict";

const Figures = (() => {
    const sources = new Map();

    async function unpack(packed) {
        const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
        const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
        const text = new Uint8Array(await new Response(stream).arrayBuffer());
        let letters = "";
        for (let i = 0; i < text.length; i += 8192) letters += String.fromCharCode(...text.subarray(i, i + 8192));
        return `data:image/svg+xml;base64,${btoa(letters)}`;
    }

    function source(packed, name) {
        if (!sources.has(name)) sources.set(name, unpack(packed[name]));
        return sources.get(name);
    }

    // Fill a figure once.
    async function fill(figure, packed) {
        if (!figure.classList.contains("waiting")) return;
        figure.classList.remove("waiting");
        const image = document.createElement("img");
        image.alt = figure.dataset.title;
        image.src = await source(packed, figure.dataset.figure);
        figure.replaceChildren(image);
    }

    // Fill figures when they come near the screen; those in closed details have no place on it.
    function watch(packed) {
        const watcher = new IntersectionObserver(
            (entries) => {
                for (const entry of entries)
                    if (entry.isIntersecting) {
                        watcher.unobserve(entry.target);
                        fill(entry.target, packed);
                    }
            },
            { rootMargin: "800px" },
        );
        for (const figure of document.querySelectorAll("figure[data-figure]")) watcher.observe(figure);
        addEventListener("beforeprint", () => {
            for (const figure of document.querySelectorAll("figure[data-figure]")) fill(figure, packed);
        });
    }

    return { watch };
})();
