// What if it weighed risk differently: the measures, their parameters, and the map of decisions over both.
"use strict";

const WhatIf = (() => {
    const GRID = 33;
    const { get } = Dom;
    const { short } = Reasons;

    function make(recording, reasons, state, current, onChange) {
        const { about, words, actions } = recording;

        function buildMeasure(role) {
            const place = get(role);
            const select = document.createElement("select");
            select.setAttribute("aria-label", place.querySelector("legend").textContent);
            if (!reasons.known) select.append(new Option(`as recorded (${about[role]})`, ""));
            for (const [name, { label }] of Object.entries(Risk.MEASURES)) select.append(new Option(label, name));
            select.addEventListener("change", () => {
                if (select.value === "") return onChange(null, null);
                const other = role === "aleatory" ? "epistemic" : "aleatory";
                const chosen = Risk.parse(select.value);
                return onChange(...pair(role, chosen, state[other] || Risk.parse("expectation")));
            });
            place.append(select);
            return { place, select, sliders: [] };
        }

        const pair = (role, mine, other) => (role === "aleatory" ? [mine, other] : [other, mine]);

        // The sliders of a measure's parameters; the one that is being moved is left alone.
        function showMeasure(role) {
            const { place, select, sliders } = controls[role];
            const measure = state[role];
            select.value = measure ? measure.name : "";
            const wanted = measure ? measure.kind.parameters : [];
            if (sliders.name !== (measure && measure.name)) {
                sliders.splice(0).forEach((slider) => slider.label.remove());
                sliders.name = measure && measure.name;
                wanted.forEach((parameter, i) => sliders.push(buildSlider(role, place, parameter, i)));
            }
            sliders.forEach((slider, i) => {
                if (document.activeElement !== slider.input || Number(slider.input.value) !== measure.numbers[i])
                    slider.input.value = measure.numbers[i];
                slider.output.textContent = short(measure.numbers[i]);
            });
        }

        function buildSlider(role, place, parameter, i) {
            const label = document.createElement("label");
            const input = document.createElement("input");
            Object.assign(input, {
                type: "range",
                min: parameter.low,
                max: parameter.high,
                step: (parameter.high - parameter.low) / 99,
            });
            input.setAttribute("aria-label", `${parameter.name}: ${place.querySelector("legend").textContent}`);
            const output = document.createElement("output");
            input.addEventListener("input", () => {
                const numbers = [...state[role].numbers];
                numbers[i] = Number(Number(input.value).toPrecision(4));
                const other = role === "aleatory" ? "epistemic" : "aleatory";
                onChange(...pair(role, Risk.make(state[role].name, numbers), state[other]));
            });
            label.append(parameter.name, input, output);
            place.append(label);
            return { label, input, output };
        }

        // The parameter of a measure that an axis of the map runs over, or none.
        const axis = (measure) => measure.kind.parameters[0] || null;
        const varied = (measure, share) => {
            const parameter = axis(measure);
            if (!parameter) return measure;
            const number = parameter.low + share * (parameter.high - parameter.low);
            return Risk.make(measure.name, [number, ...measure.numbers.slice(1)]);
        };
        const shareOf = (measure) => {
            const parameter = axis(measure);
            return parameter ? (measure.numbers[0] - parameter.low) / (parameter.high - parameter.low) : 0.5;
        };

        function showMap() {
            get("map-title").parentElement.classList.toggle("mapless", !state.aleatory);
            if (!state.aleatory) return;
            const beliefs = Array.from({ length: actions }, (_, a) => recording.belief(current(), a));
            const cells = new Uint8Array(GRID * GRID);
            const rowsOf = Recorded.range(0, GRID).map((i) => varied(state.epistemic, i / (GRID - 1)));
            for (let column = 0; column < GRID; column++) {
                const aleatory = varied(state.aleatory, column / (GRID - 1));
                const risks = beliefs.map(({ supports, laws }) =>
                    laws.map((probs, k) => aleatory.value(supports[k], probs)),
                );
                for (let row = 0; row < GRID; row++) {
                    let [best, most] = [0, -Infinity];
                    for (let a = 0; a < actions; a++) {
                        const value = Risk.across(rowsOf[row], risks[a], beliefs[a].weights, about.aggregate);
                        if (value > most) [best, most] = [a, value];
                    }
                    cells[row * GRID + column] = best;
                }
            }
            const point = {
                x: Math.min(Math.max(shareOf(state.aleatory), 0), 1),
                y: Math.min(Math.max(shareOf(state.epistemic), 0), 1),
            };
            const places = Charts.map(
                get("map"),
                get("map-over"),
                cells,
                GRID,
                point,
                mapAxes(),
                about.actions,
                recording.colours,
            );
            const won = [...places].sort((a, b) => b[1].count - a[1].count);
            const text = won
                .map(([a, { count }]) => `${about.actions[a]} on ${Math.round((100 * count) / cells.length)} %`)
                .join(", ");
            get("map-text").textContent = `Drag the point. ${text}.`;
            get("map").setAttribute(
                "aria-label",
                `Which action wins at which risk levels: ${text}. The sliders above move the point.`,
            );
            document.body.dataset.map = won.map(([a]) => a).join(",");
        }

        function mapAxes() {
            const name = (measure, role) => {
                const parameter = axis(measure);
                return parameter
                    ? {
                          name: `${role}: ${measure.kind.label} ${parameter.name}`,
                          low: short(parameter.low),
                          high: short(parameter.high),
                      }
                    : { name: `${role}: ${measure.kind.label}`, low: "", high: "" };
            };
            return { x: name(state.aleatory, words.chance), y: name(state.epistemic, words.ignorance) };
        }

        function dragMap(event) {
            if (!state.aleatory) return;
            const box = get("map").getBoundingClientRect();
            const inside = (x) => Math.min(Math.max(x, 0), 1);
            const rounded = (measure) =>
                Risk.make(
                    measure.name,
                    measure.numbers.map((number) => Number(number.toPrecision(3))),
                );
            const aleatory = varied(state.aleatory, inside((event.clientX - box.left) / box.width));
            const epistemic = varied(state.epistemic, inside(1 - (event.clientY - box.top) / box.height));
            onChange(rounded(aleatory), rounded(epistemic));
        }

        const controls = { aleatory: buildMeasure("aleatory"), epistemic: buildMeasure("epistemic") };

        function showMeasures() {
            showMeasure("aleatory");
            showMeasure("epistemic");
            get("own").disabled = reasons.known ? reasons.isOwn() : !state.aleatory;
        }

        get("own").addEventListener("click", () =>
            onChange(reasons.known ? reasons.own.aleatory : null, reasons.known ? reasons.own.epistemic : null),
        );
        Dom.draggable(get("map").parentElement, dragMap);
        return { showMeasures, showMap };
    }

    return { make };
})();
