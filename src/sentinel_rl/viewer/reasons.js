// What is known of a decision under the measures of now, and the words for it, which are those of the terminal.
"use strict";

const Reasons = (() => {
    const BUDGET = 10; // milliseconds of computing between two pictures
    const LOWEST = 5e-4; // smaller numbers are 0 in a sentence

    function short(x) {
        if (!Number.isFinite(x)) return String(x);
        if (Math.abs(x) < LOWEST) return "0";
        return Math.abs(x) >= 100 ? x.toFixed(0) : String(Number(x.toPrecision(2)));
    }

    function make(recording, state, onProgress) {
        const { about, words, hasLaws, actions } = recording;
        const own = {
            aleatory: hasLaws ? Risk.parse(about.aleatory) : null,
            epistemic: hasLaws ? Risk.parse(about.epistemic) : null,
        };
        // A measure of the user's own cannot be computed here: then the values are those that were recorded.
        const known = own.aleatory !== null && own.epistemic !== null;
        let table = new Map(); // by decision, for the measures of now
        let queue = []; // decisions that are still to be computed

        function compute(decision) {
            const each = Array.from({ length: actions }, (_, a) => {
                if (!state.aleatory) return recording.recorded(decision, a);
                const { supports, laws, weights } = recording.belief(decision, a);
                return Risk.assess(supports, laws, weights, state.epistemic, state.aleatory, about.aggregate);
            });
            const top = (name) => each.reduce((best, one, a) => (one[name] > each[best][name] ? a : best), 0);
            const best = top("value");
            const others = each.map((_, a) => a).filter((a) => a !== best);
            const second = others.length ? others.reduce((b, a) => (each[a].value > each[b].value ? a : b)) : null;
            return { each, best, second, neutral: hasLaws ? top("mean") : best };
        }

        function at(decision) {
            if (!table.has(decision)) table.set(decision, compute(decision));
            return table.get(decision);
        }

        // Compute the reasons of decisions bit by bit, in their order, without making anyone wait.
        function recompute(decisions) {
            table = new Map();
            queue = decisions;
            pump();
        }

        // Compute the reasons of more decisions.
        function extend(decisions) {
            for (const decision of decisions) table.delete(decision);
            queue.push(...decisions);
            pump();
        }

        function pump() {
            const end = performance.now() + BUDGET;
            while (queue.length && performance.now() < end) at(queue.shift());
            document.body.dataset.settled = String(queue.length === 0);
            onProgress();
            if (queue.length) requestAnimationFrame(pump);
        }

        const isOwn = () =>
            known && state.aleatory.text === own.aleatory.text && state.epistemic.text === own.epistemic.text;

        function tell(name, entries = {}) {
            return words[name].replace(/\{(\w+)\}/g, (_, key) =>
                typeof entries[key] === "number" ? short(entries[key]) : entries[key],
            );
        }

        function compared(difference, above, below) {
            if (Math.abs(difference) < LOWEST) return tell("the_same");
            return tell(difference > 0 ? above : below, { number: Math.abs(difference) });
        }

        function sentence({ each, best, second }) {
            const names = { best: about.actions[best], second: second === null ? "" : about.actions[second] };
            const one = each[best];
            const form = (second === null ? "only_action" : "decision") + (hasLaws ? "" : "_without_laws");
            const margin = second === null ? 0 : one.value - each[second].value;
            return tell(form, { ...names, margin, chance: one.chance, ignorance: one.ignorance });
        }

        function whyNot({ each, best }, other) {
            const [mine, its] = [each[other], each[best]];
            const entries = { other: about.actions[other], margin: its.value - mine.value };
            if (!hasLaws) return tell("why_not_without_laws", entries);
            return tell("why_not", {
                ...entries,
                mean: compared(mine.mean - its.mean, "higher", "lower"),
                chance: compared(mine.chance - its.chance, "more", "less"),
                ignorance: compared(mine.ignorance - its.ignorance, "more", "less"),
            });
        }

        // A number of a table: two decimals, less for large ones, and two digits for small values without laws.
        function fixed(x) {
            const size = Math.abs(x);
            const small = !hasLaws && size < 0.1;
            return (small ? short(x) : x.toFixed(size >= 1000 ? 0 : size >= 100 ? 1 : 2)).replace("-", "\u2212");
        }

        return {
            at,
            have: (decision) => table.get(decision),
            recompute,
            extend,
            own,
            known,
            isOwn,
            sentence,
            whyNot,
            fixed,
        };
    }

    return { make, short };
})();
