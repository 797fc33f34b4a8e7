// The live view: asks the server to drive on, to branch and to change the traffic, and shows other drivers beside.
"use strict";

const Live = (() => {
    const { get, element } = Dom;
    const AT_ONCE = 2; // decisions that are asked for together
    const AGAIN = 1500; // milliseconds until a lost connection is tried again
    const LANE = 4;

    function open(data, start) {
        const recordings = data.drivers.map((_, driver) => Recorded.grow(data, driver));
        // Whether the first driver was told what to do at a decision.
        recordings[0].forced = (decision) => {
            const line = Math.floor(decision / data.live.capacity);
            return lines[line].forced && decision === recordings[0].starts[line] + lines[line].fork;
        };
        const lines = []; // per line: words, fork, over per driver, sentences per driver
        const waiting = new Map(); // by line: what to do when decisions have come
        let [socket, session, page, began] = [null, null, null, false];
        const chosen = { selected: 0, moved: null };

        function connect() {
            const place = new URL("live", location.href);
            place.protocol = "ws:";
            place.search = location.search;
            place.hash = "";
            socket = new WebSocket(place);
            socket.addEventListener("open", () => send({ do: "hello", session }));
            socket.addEventListener("message", (event) => receive(JSON.parse(event.data)));
            socket.addEventListener("close", () => {
                waiting.clear();
                if (page) page.pause();
                tell("The connection is lost; what was driven stays. Trying again.");
                setTimeout(connect, AGAIN);
            });
        }

        const send = (message) => socket.readyState === WebSocket.OPEN && socket.send(JSON.stringify(message));

        function receive(answer) {
            if (answer.error) {
                waiting.clear();
                tell(answer.error);
            } else if (answer.session) {
                if (session && session !== answer.session) location.reload();
                session = answer.session;
                tell("");
            } else if (answer.scene) keep(answer);
            else if (Object.hasOwn(answer, "ended")) {
                lines[answer.ended].over[0] = true;
                waiting.delete(answer.ended);
            } else take(answer);
        }

        // Decisions of a driver.
        function take(update) {
            const { line, driver, fork, forced, words, first, count, over, sentences } = update;
            const isNew = lines.length <= line;
            if (isNew) lines.push({ words, fork, forced, over: [], sentences: data.drivers.map(() => []) });
            const known = lines[line];
            known.over[driver] = over;
            sentences.forEach((text, i) => {
                known.sentences[driver][first + i] = text;
            });
            const decisions = recordings[driver].put(update);
            if (driver !== 0) {
                if (page) page.show();
                return;
            }
            if (!began) {
                began = true;
                build();
                start(recordings[0], api);
                return;
            }
            document.body.dataset.driven = String(first + count);
            page.grown(line, isNew ? decisions : Recorded.range(decisions[0], count), isNew, fork);
            const then = waiting.get(line);
            waiting.delete(line);
            if (then) then();
        }

        function more(line, then = null) {
            if (waiting.has(line) || lines[line].over.every(Boolean) || lines[line].over[0]) return;
            waiting.set(line, then);
            send({ do: "drive", line, count: then ? 1 : AT_ONCE });
        }

        const here = () => ({ line: page.state.episode, at: page.state.t });

        function branch(action) {
            page.pause();
            send({ do: "branch", ...here(), action });
        }

        function change(entries) {
            if (!chosen.selected) return tell("Choose a car first: in the picture, or in the list.");
            page.pause();
            return send({ do: "edit", ...here(), vehicle: chosen.selected, ...entries });
        }

        // A scene as a file of the user's.
        function keep({ scene, name, wanted }) {
            const link = document.createElement("a");
            link.href = URL.createObjectURL(new Blob([scene], { type: "application/json" }));
            link.download = `${name}.scene.json`;
            link.click();
            URL.revokeObjectURL(link.href);
            document.body.dataset.scene = name;
            tell(`Kept as ${link.download}. A good driver: ${wanted}.`);
        }

        let status = null;
        function tell(text) {
            if (status) status.textContent = text;
            document.body.dataset.told = text;
        }

        const controls = {};

        function button(text, label, act) {
            const made = element("button", "", text);
            made.type = "button";
            if (label) made.setAttribute("aria-label", label);
            made.addEventListener("click", act);
            return made;
        }

        function field(text, control) {
            const label = element("label", "pick", text);
            label.append(control);
            return label;
        }

        function numberField(low, high) {
            const made = document.createElement("input");
            Object.assign(made, { type: "number", min: low, max: high, step: 1, className: "figure" });
            return made;
        }

        function build() {
            const place = get("live");
            place.classList.remove("hidden");
            const tries = element("div", "row", "From here, take");
            data.drivers[0].actions.forEach((name, a) => {
                const made = button(name, `Branch: take ${name} from here`, () => branch(a));
                made.dataset.branch = String(a);
                tries.append(made);
            });
            tries.append(
                button("Keep as a scene", "", () => {
                    tell("Judging the moment with a search; the first time takes a while.");
                    send({
                        do: "capture",
                        ...here(),
                        name: `line-${page.state.episode + 1}-decision-${page.state.t + 1}`,
                    });
                }),
            );
            const edits = element("div", "row", "Traffic");
            controls.vehicle = document.createElement("select");
            controls.vehicle.append(new Option("no car", "0"));
            for (let v = 1; v < recordings[0].arrays.cars.shape[1]; v++)
                controls.vehicle.append(new Option(`car ${v}`, String(v)));
            controls.vehicle.addEventListener("change", () => select(Number(controls.vehicle.value)));
            controls.ahead = numberField(-200, 400);
            controls.lane = numberField(1, data.drivers[0].lanes);
            controls.speed = numberField(0, 40);
            const move = button("Change", "Put the car there, at this speed", () => {
                const ego = page.world.carAt(page.state.episode, page.state.t, 0);
                change({
                    x: ego.x + Number(controls.ahead.value),
                    y: LANE * (Number(controls.lane.value) - 1),
                    speed: Math.min(Math.max(Number(controls.speed.value), 0), 40),
                });
            });
            edits.append(
                field("car", controls.vehicle),
                field("m ahead", controls.ahead),
                field("lane", controls.lane),
                field("m/s", controls.speed),
                move,
                button("Freeze", "The car stands still from now on", () => change({ freeze: true })),
                button("Wreck", "The car becomes a wreck", () => change({ wreck: true })),
            );
            status = element("p", "small");
            status.setAttribute("role", "status");
            const beside = element("div", "beside");
            controls.others = data.drivers.slice(1).map((about, i) => {
                const canvas = document.createElement("canvas");
                canvas.setAttribute("role", "img");
                const [head, says, box] = [element("h3", ""), element("p", "small"), element("div", "other")];
                head.textContent = about.agent;
                box.append(head, canvas, says);
                beside.append(box);
                return { canvas, says, world: World.make(recordings[i + 1]), name: about.agent };
            });
            place.append(tries, edits, status, beside);
        }

        function select(vehicle) {
            Object.assign(chosen, { selected: vehicle, moved: null });
            controls.vehicle.value = String(vehicle);
            if (vehicle) {
                const { episode, t } = page.state;
                const [car, ego] = [vehicle, 0].map((v) => page.world.carAt(episode, t, v));
                controls.ahead.value = String(Math.round(car.x - ego.x));
                controls.lane.value = String(
                    Math.min(Math.max(Math.round(car.y / LANE), 0), data.drivers[0].lanes - 1) + 1,
                );
                controls.speed.value = String(Math.round(car.speed));
            }
            page.show();
        }

        // A car can be chosen in the picture, and dragged to another place.
        function drag() {
            const canvas = get("world");
            canvas.style.touchAction = "pan-y";
            let held = null;
            const placed = (event) => page.world.pick(event.offsetX, event.offsetY);
            canvas.addEventListener("pointerdown", (event) => {
                const found = placed(event);
                page.pause();
                page.state.phase = 0;
                select(found.vehicle || 0);
                held = found.vehicle ? found : null;
                if (held) canvas.setPointerCapture(event.pointerId);
            });
            canvas.addEventListener("pointermove", (event) => {
                if (!held) return;
                const now = placed(event);
                if (!chosen.moved && Math.hypot(now.x - held.x, now.y - held.y) < 1) return;
                chosen.moved = { x: now.x, y: now.y };
                page.show();
            });
            canvas.addEventListener("pointerup", () => {
                const { moved } = chosen;
                held = null;
                chosen.moved = null;
                if (moved) change({ x: moved.x, y: moved.y });
            });
        }

        // The other drivers at the same moment of the same line.
        function draw({ episode, t, phase }) {
            controls.others.forEach(({ canvas, says, world, name }, i) => {
                const recording = recordings[i + 1];
                const length = recording.lengths[episode] || 0;
                if (!length) return;
                const ended = t >= length;
                const last = Math.min(t, length - 1);
                const over = ended || (last === length - 1 && phase >= 1);
                const decision = recording.starts[episode] + last;
                const moment = { episode, t: last, phase: ended ? 1 : phase, chosen: recording.taken(decision), over };
                world.draw(canvas, moment);
                const { hud, alt } = world.words(moment);
                const crashed = ended && recording.arrays.terminated.data[decision];
                says.textContent = `${crashed ? "Crashed. " : ""}${lines[episode].sentences[i + 1][last]} \u00b7 ${hud}`;
                canvas.setAttribute("aria-label", `${name}: ${alt}`);
            });
        }

        const api = {
            more,
            draw,
            chosen: () => chosen,
            isOver: (line) => Boolean(lines[line].over[0]),
            wordsOf: (line) => lines[line].words,
            attach: (given) => {
                page = given;
                drag();
            },
        };
        connect();
    }

    return { open };
})();
