// Filters of the table of claims: by verdict, preset and section of the paper.
"use strict";

const Claims = (() => {
    // What says nothing about a claim under a preset: it was not run, or there are no presets.
    const SILENT = "missing";

    function make(place) {
        const table = place.querySelector("table");
        const [preset, section] = ["preset", "section"].map((name) => place.querySelector(`select[name=${name}]`));
        const buttons = [...place.querySelectorAll("button[data-verdict]")];
        const shown = place.querySelector(".shown");
        const bodies = [...table.tBodies];
        let verdict = "";

        // The cells with the verdict on a claim under the chosen preset, or with the one that is counted.
        const cells = (body) =>
            [...body.querySelectorAll("td[data-preset]")].filter((cell) => cell.dataset.preset === preset.value);

        function fits(body, wanted) {
            if (section.value && body.dataset.section !== section.value) return false;
            if (wanted) return cells(body).some((cell) => cell.textContent.trim() === wanted);
            return !preset.value || cells(body).some((cell) => !cell.classList.contains(SILENT));
        }

        function update() {
            for (const body of bodies) body.hidden = !fits(body, verdict);
            for (const button of buttons) {
                button.setAttribute("aria-pressed", String(button.dataset.verdict === verdict));
                button.querySelector(".count").textContent = bodies.filter((body) => fits(body, button.dataset.verdict)).length;
            }
            const count = bodies.filter((body) => !body.hidden).length;
            shown.textContent = `${count} of ${bodies.length} claims`;
        }

        for (const button of buttons)
            button.addEventListener("click", () => {
                verdict = button.dataset.verdict;
                update();
            });
        for (const select of [preset, section]) select.addEventListener("change", update);
        place.querySelector(".filters").hidden = false;
        update();
    }

    return { make };
})();
