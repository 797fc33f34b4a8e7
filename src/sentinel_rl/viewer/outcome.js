// What really followed a decision, and whether returns were where they had been predicted.
"use strict";

const Outcome = (() => {
    const { get } = Dom;
    const ENOUGH = 20; // decisions before anything is said about them

    function make(recording, reasons, current) {
        const { about, arrays, taken, curves, ranks, closeUp } = recording;
        const { fixed } = reasons;

        function show() {
            const decision = current();
            const did = taken(decision);
            const { atoms, mixture } = curves(recording.belief(decision, did));
            const realised = arrays.realised.data[decision];
            const unknown = Number.isNaN(realised);
            const share = Math.round(100 * ranks[decision]);
            const chance = share < 1 ? "less than 1 %" : share > 99 ? "more than 99 %" : `${share} %`;
            const told = unknown
                ? `What followed is not known: ${recording.unknown}.`
                : `From here on it earned ${fixed(realised)} (discounted by ${about.gamma} per decision). The predicted chance of less than that was ${chance}.`;
            const one = {
                atoms,
                mixture,
                realised: unknown ? null : realised,
                words: unknown ? "" : `really ${fixed(realised)}`,
                colour: recording.colours[did],
            };
            Charts.outcome(
                get("outcome-law"),
                { ...one, label: `The law predicted for ${about.actions[did]}. ${told}` },
                closeUp([one], unknown ? [] : [realised]),
            );
            get("outcome-text").textContent = told;
            const sofar = ranks.slice(recording.since(decision), decision + 1).filter((u) => u !== null);
            const shares = Recorded.range(0, 10).map((bin) =>
                sofar.length ? sofar.filter((u) => Math.min(Math.floor(u * 10), 9) === bin).length / sofar.length : 0,
            );
            const inside = sofar.filter((u) => u >= 0.1 && u <= 0.9).length;
            const held = inside / (sofar.length || 1);
            const verdict =
                sofar.length < ENOUGH
                    ? ""
                    : held > 0.9
                      ? "Its laws are wider than they need be. "
                      : held < 0.7
                        ? "Its laws are narrower than they should be. "
                        : "That is about right. ";
            const text = sofar.length
                ? `In ${sofar.length} ${sofar.length === 1 ? "decision" : "decisions"} so far, ${Math.round(100 * held)} % of the returns fell into the middle 80 % of what was predicted. ${verdict}Even bars would be a calibrated agent.`
                : "No return is known yet.";
            Charts.calibration(get("calibration"), shares, text);
            get("calibration-text").textContent = text;
        }

        return { show };
    }

    return { make };
})();
