// The timeline of an episode: penalties, preferred actions, and marks to jump to.
"use strict";

const Timeline = (() => {
    const { get, element } = Dom;
    const { short } = Reasons;

    function make(recording, reasons, world, state, onJump) {
        const { about, arrays, words, hasLaws, starts, lengths, taken } = recording;

        const misses = new Map();
        const near = (decision, t) => {
            if (!misses.has(decision)) misses.set(decision, world.nearMiss(state.episode, t));
            return misses.get(decision);
        };

        function marks() {
            const first = starts[state.episode];
            const found = [];
            for (const t of Recorded.range(0, lengths[state.episode])) {
                const told = reasons.have(first + t);
                if (arrays.terminated.data[first + t]) {
                    const road = about.view === "road";
                    found.push({
                        t,
                        kind: road ? "crash" : "end",
                        words: road ? "crash" : "the episode ended by itself",
                    });
                } else if (near(first + t, t))
                    found.push({ t, kind: "near", words: "near miss: another vehicle within 2 m" });
                if (told && told.best !== told.neutral)
                    found.push({
                        t,
                        kind: "flip",
                        words: `${about.actions[told.best]}, not ${about.actions[told.neutral]}`,
                    });
            }
            return found;
        }

        let placed = null;
        let jumps = [];

        function show() {
            const [first, length] = [starts[state.episode], lengths[state.episode]];
            const told = Recorded.range(first, length).map((d) => reasons.have(d));
            const of = (name) => told.map((one, t) => (one && hasLaws ? one.each[taken(first + t)][name] : 0));
            const [chance, ignorance] = [of("chance"), of("ignorance")];
            const lanes = [
                [chance, "--chance"],
                [ignorance, "--ignorance"],
            ].map(([numbers, name]) => ({ numbers, most: Math.max(...numbers), fill: `var(${name})` }));
            jumps = marks();
            const line = {
                length,
                lanes: hasLaws ? lanes : [],
                marks: jumps,
                now: state.t,
                phase: state.phase,
                colours: recording.colours,
                preferred: told.map((one, t) => (one ? one.best : taken(first + t))),
                taken: Recorded.range(first, length).map(taken),
                label: hasLaws
                    ? `Per decision, what chance costs the action taken, at most ${short(lanes[0].most)}, what ignorance costs it, at most ${short(lanes[1].most)}, and which action is preferred.`
                    : "Per decision, which action is preferred.",
            };
            placed = Charts.timeline(get("timeline"), line);
            if (hasLaws)
                lanes.forEach(({ most }, i) => {
                    get("marks").children[i].lastChild.textContent = ` costs up to ${short(most)}`;
                });
            showMoments();
        }

        const MARKS = { flip: "caution decides, against the mean", near: "near miss", crash: "crash", end: "end" };
        let moments = []; // runs of equal marks, as [first, last, kind]

        function showMoments() {
            moments = [];
            for (const kind of Object.keys(MARKS)) {
                for (const { t } of jumps.filter((mark) => mark.kind === kind)) {
                    const run = moments[moments.length - 1];
                    if (run && run.kind === kind && run.last === t - 1) run.last = t;
                    else moments.push({ first: t, last: t, kind });
                }
            }
            moments.sort((a, b) => a.first - b.first);
            const buttons = moments.slice(0, 60).map((moment) => {
                const item = document.createElement("li");
                const button = element("button", "", span(moment));
                button.type = "button";
                button.prepend(Charts.sign(moment.kind));
                button.setAttribute("aria-label", `Decision ${span(moment)}: ${MARKS[moment.kind]}`);
                button.addEventListener("click", () => onJump(moment.first));
                item.append(button);
                return item;
            });
            get("moments").replaceChildren(...buttons);
            markMoments();
        }

        const span = ({ first, last }) => (first === last ? `${first + 1}` : `${first + 1}\u2013${last + 1}`);

        function markMoments() {
            [...get("moments").children].forEach((item, i) => {
                const here = moments[i].first <= state.t && state.t <= moments[i].last;
                item.firstChild.setAttribute("aria-current", String(here));
            });
        }

        function movePlayhead() {
            const head = get("playhead");
            if (!head || !placed) return;
            const x = placed.left + (state.t + state.phase) * placed.step;
            head.setAttribute("x1", x);
            head.setAttribute("x2", x);
        }

        function showSigns() {
            const signs = hasLaws
                ? [
                      ["chance", words.chance],
                      ["ignorance", words.ignorance],
                      ["flip", MARKS.flip],
                  ]
                : [];
            if (about.view === "road") signs.push(["near", MARKS.near], ["crash", MARKS.crash]);
            for (const [kind, text] of signs) {
                const made = element("span", "", text);
                made.prepend(Charts.sign(kind));
                made.append("");
                get("marks").append(made);
            }
            get("marks").append(element("span", "", "coloured strip: the action preferred"));
        }

        // The nearest mark before or after the present decision, or null.
        function mark(direction) {
            const others = jumps.map((one) => one.t).filter((t) => (direction > 0 ? t > state.t : t < state.t));
            if (!others.length) return null;
            return direction > 0 ? Math.min(...others) : Math.max(...others);
        }

        showSigns();
        Dom.draggable(get("timeline"), (event) => {
            const x = event.clientX - get("timeline").getBoundingClientRect().left;
            onJump(Math.floor((x - placed.left) / placed.step));
        });
        return { show, movePlayhead, markMoments, mark };
    }

    return { make };
})();
