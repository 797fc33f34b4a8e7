// The page: the moment that is shown, how time passes, and what follows from keys and the address.
"use strict";

// With `live`, the recording grows: its episodes are lines, and what is not there yet is asked for.
function startPage(recording, live) {
    const SPEEDS = [0.0625, 0.125, 0.25, 0.5, 1, 2, 4, 8];
    const { get } = Dom;
    const { about, arrays, starts, lengths, hasLaws, actions } = recording;
    const state = {
        episode: 0,
        t: 0,
        phase: 0,
        playing: false,
        compared: null,
        speed: 1,
        aleatory: null,
        epistemic: null,
    };
    const current = () => starts[state.episode] + state.t;
    const world = World.make(recording);
    const reasons = Reasons.make(recording, state, () => timeline.show());
    if (reasons.known) Object.assign(state, reasons.own);
    const timeline = Timeline.make(recording, reasons, world, state, jump);
    const decision = DecisionView.make(recording, reasons, state, current, compare);
    const whatIf = hasLaws ? WhatIf.make(recording, reasons, state, current, setMeasures) : null;
    const outcome = hasLaws ? Outcome.make(recording, reasons, current) : null;

    const recompute = () =>
        reasons.recompute([current(), ...Recorded.range(starts[state.episode], lengths[state.episode])]);

    function setMeasures(aleatory, epistemic) {
        Object.assign(state, { aleatory, epistemic });
        whatIf.showMeasures();
        recompute();
        decision.show();
        whatIf.showMap();
        showWorld();
        remember();
    }

    function jump(t, { keep = false } = {}) {
        if (live && t >= lengths[state.episode]) live.more(state.episode, () => jump(t, { keep }));
        state.t = Math.min(Math.max(t, 0), lengths[state.episode] - 1);
        state.phase = 0;
        if (!keep) pause();
        showMoment();
        remember();
    }

    function chooseEpisode(episode) {
        state.episode = Math.min(Math.max(episode, 0), lengths.length - 1);
        state.t = 0;
        state.phase = 0;
        get("episode").value = String(state.episode);
        get("scrub").max = String(lengths[state.episode] - 1);
        pause();
        recompute();
        showMoment();
        remember();
    }

    function play() {
        const last = lengths[state.episode] - 1;
        if (state.t >= last && state.phase >= 1) Object.assign(state, { t: 0, phase: 0 });
        state.playing = true;
        document.body.classList.add("playing");
        get("play").setAttribute("aria-label", "Pause");
        get("sentence").setAttribute("aria-live", "off");
        showMoment();
        before = null;
        requestAnimationFrame(tick);
    }

    function pause() {
        if (!state.playing) return;
        state.playing = false;
        document.body.classList.remove("playing");
        get("play").setAttribute("aria-label", "Play");
        get("sentence").setAttribute("aria-live", "polite");
        remember();
    }

    let before = null;

    function tick(now) {
        if (!state.playing) return;
        const passed = before === null ? 0 : Math.min(now - before, 250);
        before = now;
        const place = state.t + state.phase + (passed / 1000) * about.per_second * state.speed;
        const length = lengths[state.episode];
        if (live && place > length - 2) live.more(state.episode);
        if (place >= length) {
            const waits = live && !live.isOver(state.episode);
            if (!waits || state.phase < 1) {
                Object.assign(state, { t: length - 1, phase: 1 });
                showMoment();
            }
            if (waits) {
                requestAnimationFrame(tick);
                return;
            }
            pause();
            document.body.dataset.over = String(state.episode);
            return;
        }
        const t = Math.floor(place);
        const moved = t !== state.t;
        Object.assign(state, { t, phase: place - t });
        if (moved) showMoment();
        else {
            if (about.view === "road") showWorld();
            timeline.movePlayhead();
        }
        requestAnimationFrame(tick);
    }

    function showWorld() {
        const over = state.t === lengths[state.episode] - 1 && state.phase >= 1;
        const chosen = reasons.isOwn() || !state.aleatory ? recording.taken(current()) : reasons.at(current()).best;
        const moment = { episode: state.episode, t: state.t, phase: state.phase, chosen, marked: state.compared, over };
        if (live) Object.assign(moment, live.chosen());
        world.draw(get("world"), moment);
        if (live) live.draw(moment);
        const { hud, alt } = world.words(moment);
        const place = `Decision ${state.t + 1} of ${lengths[state.episode]}`;
        get("hud").textContent = hud ? `${place} \u00b7 ${hud}` : place;
        if (!state.playing) get("world").setAttribute("aria-label", alt);
    }

    let mapped = 0;

    function showMoment() {
        document.body.dataset.decision = String(state.t);
        document.body.dataset.episode = String(state.episode);
        get("scrub").value = String(state.t);
        get("scrub").setAttribute("aria-valuetext", `decision ${state.t + 1} of ${lengths[state.episode]}`);
        showWorld();
        decision.show();
        if (hasLaws) outcome.show();
        timeline.movePlayhead();
        timeline.markMoments();
        // While it plays fast, the map is drawn a few times a second.
        if (hasLaws && (!state.playing || performance.now() - mapped > 120)) {
            whatIf.showMap();
            mapped = performance.now();
        }
    }

    function compare(action) {
        state.compared = state.compared === action ? null : action;
        decision.show();
        showWorld();
    }

    // The moment and the measures in the address, to be sent to others; browsers allow few changes of it per second.
    let later = 0;

    function remember() {
        clearTimeout(later);
        if (!state.playing) later = setTimeout(writeAddress, 100);
    }

    function writeAddress() {
        const entries = { episode: state.episode + 1, decision: state.t + 1 };
        if (state.aleatory) Object.assign(entries, { aleatory: state.aleatory.text, epistemic: state.epistemic.text });
        const hash = `#${Object.entries(entries)
            .map(([key, value]) => `${key}=${value}`)
            .join("&")}`;
        if (location.hash !== hash) history.replaceState(null, "", hash);
    }

    function recall() {
        const given = new Map(
            location.hash
                .slice(1)
                .split("&")
                .map((entry) => entry.split("=", 2)),
        );
        const whole = (key, high) => {
            const number = Number(given.get(key));
            return Number.isInteger(number) && number >= 1 && number <= high ? number - 1 : 0;
        };
        state.episode = whole("episode", lengths.length);
        state.t = whole("decision", lengths[state.episode]);
        state.phase = 0;
        if (!hasLaws) return;
        const [aleatory, epistemic] = ["aleatory", "epistemic"].map((role) =>
            Risk.parse(decodeURIComponentSafely(given.get(role) || "")),
        );
        if (aleatory && epistemic) Object.assign(state, { aleatory, epistemic });
    }

    function decodeURIComponentSafely(text) {
        try {
            return decodeURIComponent(text);
        } catch {
            return "";
        }
    }

    function refresh() {
        get("episode").value = String(state.episode);
        get("scrub").max = String(lengths[state.episode] - 1);
        if (hasLaws) setMeasures(state.aleatory, state.epistemic);
        else recompute();
        showMoment();
    }

    function setTheme(name) {
        document.documentElement.dataset.theme = name;
        decision.recolour();
        get("theme").textContent = name === "dark" ? "Light" : "Dark";
        get("theme").setAttribute("aria-label", `Switch to ${name === "dark" ? "light" : "dark"} colours`);
    }

    const jumpTo = (t) => {
        if (t !== null) jump(t);
    };

    const KEYS = {
        " ": () => (state.playing ? pause() : play()),
        ArrowLeft: () => jump(state.t - 1),
        ArrowRight: () => jump(state.t + 1),
        ArrowUp: () => jumpTo(timeline.mark(-1)),
        ArrowDown: () => jumpTo(timeline.mark(1)),
        p: () => chooseEpisode(state.episode - 1),
        n: () => chooseEpisode(state.episode + 1),
        Escape: () => state.compared !== null && compare(state.compared),
    };

    function onKey(event) {
        if (event.ctrlKey || event.metaKey || event.altKey) return;
        const tag = event.target.tagName;
        const digit = /^[1-9]$/.test(event.key) ? Number(event.key) - 1 : -1;
        if (tag === "SELECT" || (tag === "INPUT" && event.key !== " ") || (tag === "BUTTON" && event.key === " "))
            return;
        if (digit >= 0 && digit < actions) compare(digit);
        else if (Object.hasOwn(KEYS, event.key)) KEYS[event.key]();
        else return;
        event.preventDefault();
    }

    function begin() {
        get("subject").textContent =
            `${about.agent} in ${about.env}, maximising ${about.objective} \u00b7 ${live ? "live" : lengths.length === 1 ? "1 episode" : `${lengths.length} episodes`}, seed ${about.seed}`;
        get("legend").textContent = world.legend;
        get("made").textContent = live
            ? recording.made
            : `${recording.made} The page is whole in itself: it loads nothing and sends nothing.`;
        get("reading").classList.toggle("hidden", !hasLaws);
        showKeys();
        if (live) {
            get("episode").previousSibling.textContent = "Line ";
            lengths.forEach((_, e) => addLine(e));
        } else
            lengths.forEach((length, e) => {
                const last = starts[e] + length - 1;
                const end = arrays.terminated.data[last] ? (about.view === "road" ? ", crash" : ", ended") : "";
                get("episode").append(new Option(`${e + 1} (${length} decisions${end})`, String(e)));
            });
        const usual = about.per_second <= 5 ? 1 : 4 / about.per_second;
        state.speed = SPEEDS.reduce((best, speed) =>
            Math.abs(Math.log(speed / usual)) < Math.abs(Math.log(best / usual)) ? speed : best,
        );
        for (const speed of SPEEDS)
            get("speed").append(
                new Option(
                    speed >= 1 ? `${speed}\u00d7` : `1/${1 / speed}\u00d7`,
                    String(speed),
                    false,
                    speed === state.speed,
                ),
            );
        document.body.classList.toggle("without-laws", !hasLaws);
        for (const id of ["what-if", "outcome"]) get(id).classList.toggle("hidden", !hasLaws);
        get("play").addEventListener("click", KEYS[" "]);
        get("previous").addEventListener("click", KEYS.ArrowLeft);
        get("next").addEventListener("click", KEYS.ArrowRight);
        get("scrub").addEventListener("input", () => jump(Number(get("scrub").value)));
        get("speed").addEventListener("change", () => {
            state.speed = Number(get("speed").value);
        });
        get("episode").addEventListener("change", () => chooseEpisode(Number(get("episode").value)));
        get("theme").addEventListener("click", () => {
            setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
            refresh();
        });
        document.addEventListener("keydown", onKey);
        window.addEventListener("resize", () => {
            timeline.show();
            showMoment();
        });
        window.addEventListener("hashchange", () => {
            pause();
            recall();
            refresh();
        });
        const dark = window.matchMedia("(prefers-color-scheme: dark)");
        setTheme(dark.matches ? "dark" : "light");
        dark.addEventListener("change", () => {
            setTheme(dark.matches ? "dark" : "light");
            refresh();
        });
        recall();
        refresh();
        document.body.dataset.ready = "true";
    }

    function addLine(e) {
        get("episode").append(new Option(`${e + 1}: ${live.wordsOf(e)}`, String(e)));
    }

    // Decisions of a line have come: a new line is shown from where it left another one.
    function grown(line, decisions, isNew, from) {
        reasons.extend(decisions);
        if (isNew) {
            addLine(line);
            chooseEpisode(line);
            jump(from);
            return;
        }
        if (line !== state.episode) return;
        get("scrub").max = String(lengths[line] - 1);
        timeline.show();
        if (!state.playing) showMoment();
    }

    function showKeys() {
        const keys = [
            ["space", "play or pause"],
            ["\u2190 \u2192", "one decision back or on"],
            ["\u2191 \u2193", "previous or next mark"],
            [`1\u2013${Math.min(actions, 9)}`, "ask why not this action"],
            ["n p", "next or previous episode"],
        ];
        for (const [key, text] of keys) {
            const made = document.createElement("kbd");
            made.textContent = key;
            get("keys").append(made, ` ${text} \u00a0 `);
        }
    }

    if (live) live.attach({ state, world, recording, grown, show: showWorld, pause });
    begin();
}

(() => {
    const data = JSON.parse(Dom.get("recording").textContent);
    if (data.live) Live.open(data, startPage);
    else startPage(Recorded.open(data), null);
})();
