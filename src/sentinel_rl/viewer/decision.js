// The decision: its sentence, and a row per action with its laws and the sum of its value.
"use strict";

const DecisionView = (() => {
    const { get, element } = Dom;
    const { short } = Reasons;

    function make(recording, reasons, state, current, onCompare) {
        const { about, words, hasLaws, actions, members, taken, mixture, curves, part, closeUp } = recording;
        const { fixed } = reasons;

        const rows = about.actions.map((name, a) => {
            const row = document.createElement("li");
            row.className = "action";
            row.style.setProperty("--mark", `var(${recording.colours[a]})`);
            const button = element("button", "name");
            button.type = "button";
            const badge = element("span", "badge");
            button.append(element("span", "number", String(a + 1)), name, badge);
            const [law, bar, worth] = [element("div", "law"), element("div", "bar"), element("div", "worth")];
            const [lawChart, barChart, sum] = [
                Charts.make("svg", { role: "img" }),
                Charts.make("svg", { role: "img" }),
                element("div", "sum"),
            ];
            law.append(lawChart);
            bar.append(barChart, sum);
            row.append(button, law, bar, worth);
            row.addEventListener("click", () => onCompare(a));
            get("actions").append(row);
            return { row, button, badge, lawChart, barChart, sum, worth };
        });

        function show() {
            const told = reasons.at(current());
            const shown = reasons.sentence(told);
            if (get("sentence").textContent !== shown) get("sentence").textContent = shown;
            get("aside").textContent = aside(told);
            get("sentence").style.setProperty("--mark", `var(${recording.colours[told.best]})`);
            get("whynot").textContent = whyNotWords(told);
            document.body.dataset.best = String(told.best);
            const values = told.each.map((one) => one.value);
            const tops = told.each.map((one) => (hasLaws ? one.mean : one.value));
            const low = Math.min(...values, ...tops);
            const high = Math.max(...values, ...tops);
            const pad = (high - low) * 0.04 || 0.5;
            const span = { low: low - pad, high: high + pad, best: told.each[told.best].value };
            const laws = hasLaws ? told.each.map((_, a) => recording.belief(current(), a)) : [];
            const drawn = laws.map(curves);
            const range = hasLaws ? { ...closeUp(drawn, [...values, ...tops]), top: heightOf(drawn) } : null;
            rows.forEach((row, a) => showAction(row, a, told, span, { ...laws[a], drawn: drawn[a] }, range));
        }

        // The height of the charts of all laws: one narrow law is cut off rather than that it flattens all others.
        function heightOf(drawn) {
            const peak = (probs) => probs.reduce((most, p) => Math.max(most, p), 0);
            const highest = Math.max(...drawn.flatMap(({ laws }) => laws.map(peak)));
            const usual = drawn.map((one) => peak(one.mixture)).sort((a, b) => a - b)[Math.floor(drawn.length / 2)];
            return 1.05 * Math.min(highest, 2.5 * usual) || 1;
        }

        function whyNotWords(told) {
            if (state.compared === null) return `Why not another one? Press its number, or choose it in the list.`;
            if (state.compared === told.best) return `${about.actions[told.best]} is what it prefers.`;
            return `Why not ${about.actions[state.compared]}? ${reasons.whyNot(told, state.compared)}.`;
        }

        function aside({ best, neutral }) {
            const did = taken(current());
            if (recording.forced(current()))
                return did === best
                    ? `You chose ${about.actions[did]} here, as the agent would.`
                    : `You chose ${about.actions[did]} here; the agent prefers ${about.actions[best]}.`;
            if (did !== best && reasons.isOwn())
                return `The agent took ${about.actions[did]}: the two are equal to the precision it computes in.`;
            if (did !== best)
                return `With these measures it would choose ${about.actions[best]}; it took ${about.actions[did]}.`;
            if (hasLaws && neutral !== best)
                return `Caution changed its mind: by the mean alone it would be ${about.actions[neutral]}.`;
            if (hasLaws && !about.note) return "The mean alone would choose the same.";
            return about.note;
        }

        function showAction(row, a, told, span, laws, lawRange) {
            const one = told.each[a];
            const name = about.actions[a];
            row.row.classList.toggle("best", a === told.best);
            row.row.classList.toggle("compared", a === state.compared && a !== told.best);
            row.button.setAttribute("aria-pressed", String(a === state.compared));
            const did = taken(current()) === a;
            row.badge.textContent = a === told.best ? (did ? "chosen" : "would be chosen") : did ? "was taken" : "";
            const behind = told.each[told.best].value - one.value;
            row.worth.replaceChildren(
                fixed(one.value),
                element("small", "", a === told.best ? "best" : `${short(behind)} less`),
            );
            const colour = recording.colours[a];
            const tips = { valueWords: `${words.value} ${fixed(one.value)}`, colour };
            if (!hasLaws) return showEstimate(row, a, one, tips, told);
            Object.assign(tips, {
                meanWords: `${words.mean} ${fixed(one.mean)}`,
                chanceWords: `${words.chance} costs ${short(one.chance)}`,
                ignoranceWords: `${words.ignorance} costs ${short(one.ignorance)}`,
            });
            row.sum.textContent =
                `${fixed(one.mean)} \u2212 ${fixed(one.chance)} \u2212 ${fixed(one.ignorance)} = ${fixed(one.value)}`.replaceAll(
                    "\u2212 \u2212",
                    "+ ",
                );
            const mixed = mixture(laws);
            const until = state.aleatory ? Risk.emphasis(state.aleatory, mixed.atoms, mixed.probs) : null;
            const label = `${name}: ${members} laws of the return; ${tips.meanWords}, ${tips.valueWords}`;
            const shown = a === actions - 1 ? lawRange.ticks : [];
            Charts.laws(
                row.lawChart,
                { ...one, ...tips, ...laws.drawn, weights: laws.weights, until, label, ticks: shown },
                lawRange,
            );
            const parts = `${name}: ${tips.meanWords}, ${tips.chanceWords}, ${tips.ignoranceWords}, ${tips.valueWords}`;
            return Charts.sum(row.barChart, { ...one, ...tips, label: parts }, span);
        }

        function showEstimate(row, a, one, tips, told) {
            const parts = about.parts.map((name) => [name, part(name, current(), a)]);
            row.sum.textContent = parts.map(([name, number]) => `${name} ${short(number)}`).join(" \u00b7 ");
            const all = (name) => told.each.map((_, b) => part(name, current(), b));
            const centre = about.parts.includes("mean") ? part("mean", current(), a) : one.value;
            const deviations = ["epistemic_sd", "aleatory_sd"].filter((name) => about.parts.includes(name));
            const spreads = deviations.map((name) => ({
                centre,
                sd: part(name, current(), a),
                words: `${name} ${short(part(name, current(), a))}`,
            }));
            const widest = deviations.length ? Math.max(...deviations.flatMap(all)) : 0;
            const values = [
                ...told.each.map((each) => each.value),
                ...(about.parts.includes("mean") ? all("mean") : []),
            ];
            const [low, high] = [Math.min(...values) - widest, Math.max(...values) + widest];
            const pad = (high - low) * 0.05 || 0.5;
            const label = `${about.actions[a]}: ${tips.valueWords}; ${row.sum.textContent}`;
            Charts.estimate(row.barChart, { ...one, ...tips, spreads, label }, { low: low - pad, high: high + pad });
        }

        // What can be read on the colours of the actions, in the present scheme.
        function recolour() {
            for (const [a, row] of rows.entries()) row.row.style.setProperty("--on", Dom.onto(recording.colours[a]));
        }

        function showHeads() {
            const heads = hasLaws
                ? [
                      "",
                      `the return, by ${members} networks; shaded: what counts more`,
                      `${words.mean} \u2212 ${words.chance} \u2212 ${words.ignorance}`,
                      words.value,
                  ]
                : ["", "estimates", words.value];
            get("key").append(...heads.map((text) => element("span", "", text)));
        }

        showHeads();
        return { show, recolour };
    }

    return { make };
})();
