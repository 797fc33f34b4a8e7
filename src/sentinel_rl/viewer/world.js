// Draws the world at a moment: a road with vehicles, an image, or the observation as a chart.
"use strict";

const World = (() => {
    const { colour, fit, onto } = Dom;
    const LENGTH = 5;
    const WIDTH = 2;
    const LANE = 4;
    const NEAR = 2; // metres between two vehicles that are a near miss

    function road(recording) {
        const { arrays, about } = recording;
        const vehicles = arrays.cars.shape[1];
        const [cars, crashed] = [arrays.cars.data, arrays.crashed.data];
        const rows = arrays.seen.shape[1];
        const frameOf = (episode, t) => recording.starts[episode] * about.substeps + episode + t * about.substeps;

        // Place, heading and speed of a vehicle between two simulation steps.
        function at(frame, vehicle) {
            const [low, part] = [Math.floor(frame), frame - Math.floor(frame)];
            const a = (low * vehicles + vehicle) * 4;
            const b = part > 0 ? a + vehicles * 4 : a;
            const mix = (i) => cars[a + i] + part * (cars[b + i] - cars[a + i]);
            return {
                x: mix(0),
                y: mix(1),
                heading: mix(2),
                speed: mix(3),
                crashed: crashed[low * vehicles + vehicle] === 1,
            };
        }

        function seenAt(decision) {
            return Array.from({ length: rows - 1 }, (_, row) => arrays.seen.data[decision * rows + row + 1]);
        }

        function nearest(episode, t) {
            const global = recording.starts[episode] + t;
            const frame = frameOf(episode, t);
            const ego = at(frame, 0);
            const ahead = seenAt(global)
                .filter((v) => v > 0)
                .map((v) => at(frame, v).x - ego.x)
                .filter((dx) => dx > 0);
            return {
                ego,
                count: seenAt(global).filter((v) => v > 0).length,
                ahead: ahead.length ? Math.min(...ahead) : null,
            };
        }

        // Whether another vehicle comes within NEAR metres during a decision, without a crash.
        function nearMiss(episode, t) {
            const first = frameOf(episode, t);
            let least = Infinity;
            for (let frame = first + 1; frame <= first + about.substeps; frame++) {
                if (crashed[frame * vehicles]) return false;
                const ego = at(frame, 0);
                for (let v = 1; v < vehicles; v++) {
                    const other = at(frame, v);
                    const dx = Math.max(Math.abs(other.x - ego.x) - LENGTH, 0);
                    const dy = Math.max(Math.abs(other.y - ego.y) - WIDTH, 0);
                    least = Math.min(least, Math.hypot(dx, dy));
                }
            }
            return least < NEAR;
        }

        function drawLanes(context, view) {
            const { left, scale, width, top } = view;
            const height = about.lanes * LANE * scale;
            context.fillStyle = colour("--road");
            context.fillRect(0, top, width, height);
            context.strokeStyle = colour("--lane");
            for (let k = 0; k <= about.lanes; k++) {
                const y = top + k * LANE * scale;
                const edge = k === 0 || k === about.lanes;
                context.lineWidth = edge ? 2 : 1.5;
                context.setLineDash(edge ? [] : [3 * scale, 6 * scale]);
                context.lineDashOffset = edge ? 0 : (left * scale) % (9 * scale);
                context.beginPath();
                context.moveTo(0, y);
                context.lineTo(width, y);
                context.stroke();
            }
            context.setLineDash([]);
        }

        function drawCar(context, view, car, style) {
            const { scale } = view;
            const [x, y] = view.place(car.x, car.y);
            if (x < -40 || x > view.width + 40) return;
            context.save();
            context.translate(x, y);
            context.rotate(car.heading);
            const [length, width] = [LENGTH * scale, WIDTH * scale];
            context.beginPath();
            context.roundRect(-length / 2, -width / 2, length, width, Math.min(width * 0.3, 6));
            context.fillStyle = car.crashed ? colour("--ignorance") : style.fill;
            context.strokeStyle = car.crashed ? colour("--ignorance") : style.stroke;
            context.lineWidth = 1.5;
            context.fill();
            context.stroke();
            context.fillStyle = style.glass;
            context.beginPath();
            context.roundRect(length * 0.08, -width * 0.34, length * 0.2, width * 0.68, 2);
            context.fill();
            if (car.crashed) {
                context.strokeStyle = colour("--card");
                context.lineWidth = 2;
                context.beginPath();
                context.moveTo(-width * 0.3, -width * 0.3);
                context.lineTo(width * 0.3, width * 0.3);
                context.moveTo(-width * 0.3, width * 0.3);
                context.lineTo(width * 0.3, -width * 0.3);
                context.stroke();
            }
            context.restore();
            if (car.crashed) return;
            context.textAlign = "center";
            context.textBaseline = "middle";
            const inside = scale > 8;
            context.font = `${inside ? "600 " : ""}${inside ? 11 : 10}px system-ui, sans-serif`;
            context.fillStyle = inside ? style.text : colour("--soft");
            context.fillText(
                String(Math.round(car.speed)),
                inside ? x - 0.9 * scale : x,
                inside ? y + 0.5 : y - scale - 7,
            );
            context.textBaseline = "alphabetic";
        }

        // Where each action leads: the action, then IDLE. Numbers are those of the keys; a cross is a crash.
        function drawPaths(context, view, decision, from, chosen, marked) {
            const [, actions, points] = arrays.paths.shape;
            const order = Array.from({ length: actions }, (_, a) => a).sort((a, b) => (a === chosen) - (b === chosen));
            const ends = [];
            for (const a of order) {
                const path = Array.from({ length: points }, (_, i) => {
                    const p = ((decision * actions + a) * points + i) * 2;
                    return view.place(arrays.paths.data[p], arrays.paths.data[p + 1]);
                });
                const strong = a === chosen || a === marked;
                context.strokeStyle = colour(recording.colours[a]);
                context.globalAlpha = strong ? 1 : 0.55;
                context.lineWidth = a === chosen ? 4.5 : strong ? 3 : 2;
                context.setLineDash(a === chosen ? [] : [5, 4]);
                context.beginPath();
                context.moveTo(...view.place(from.x + LENGTH / 2, from.y));
                for (const point of path) context.lineTo(...point);
                context.stroke();
                context.setLineDash([]);
                ends.push({
                    a,
                    at: path[points - 1],
                    strong,
                    wrecked: arrays.wrecked.data[decision * actions + a] === 1,
                });
                context.globalAlpha = 1;
            }
            // Actions that lead to the same place have their dots side by side, in the order of their numbers.
            const groups = [];
            for (const end of ends.sort((one, other) => one.a - other.a)) {
                const same = groups.find(
                    ([first]) => Math.hypot(first.at[0] - end.at[0], first.at[1] - end.at[1]) < 15,
                );
                if (same) same.push(end);
                else groups.push([end]);
            }
            for (const group of groups) {
                group.forEach(({ at, a, strong, wrecked }, i) => {
                    drawEnd(context, at[0] + (i - (group.length - 1) / 2) * 15, at[1], a, strong, wrecked);
                });
            }
        }

        function drawEnd(context, x, y, action, strong, wrecked) {
            context.beginPath();
            context.arc(x, y, strong ? 9 : 7.5, 0, 2 * Math.PI);
            context.fillStyle = colour(recording.colours[action]);
            context.fill();
            context.lineWidth = 1.5;
            context.strokeStyle = colour("--card");
            context.stroke();
            context.fillStyle = onto(recording.colours[action]);
            context.font = `700 ${strong ? 12 : 10}px system-ui, sans-serif`;
            context.textAlign = "center";
            context.textBaseline = "middle";
            context.fillText(String(action + 1), x, y + 0.5);
            context.textBaseline = "alphabetic";
            if (wrecked) {
                context.strokeStyle = colour("--ignorance");
                context.lineWidth = 3;
                context.beginPath();
                for (const side of [-1, 1]) {
                    context.moveTo(x - 5, y - 16 - 5 * side);
                    context.lineTo(x + 5, y - 16 + 5 * side);
                }
                context.stroke();
            }
        }

        function draw(canvas, moment) {
            const span = Math.min(Math.max(canvas.clientWidth / 11, 84), 116);
            const scale = canvas.clientWidth / span;
            const top = 40;
            const { context, width, height } = fit(canvas, Math.round(about.lanes * LANE * scale + top + 16));
            const frame = frameOf(moment.episode, moment.t) + moment.phase * about.substeps;
            const ego = at(frame, 0);
            const left = ego.x - 0.2 * span;
            const place = (x, y) => [(x - left) * scale, top + (y + LANE / 2) * scale];
            const view = { left, scale, width, height, top, place };
            drawLanes(context, view);
            const decision = recording.starts[moment.episode] + moment.t;
            const start = at(frameOf(moment.episode, moment.t), 0);
            if (!moment.over) drawPaths(context, view, decision, start, moment.chosen, moment.marked);
            const seen = new Set(seenAt(decision));
            const glass = colour("--road");
            const car = colour("--car");
            for (let v = vehicles - 1; v >= 1; v--) {
                const known = { fill: car, stroke: car, glass, text: onto("--car") };
                const style = seen.has(v) ? known : { fill: glass, stroke: car, glass, text: colour("--soft") };
                drawCar(context, view, at(frame, v), style);
            }
            drawCar(context, view, ego, {
                fill: colour("--ego"),
                stroke: colour("--ego"),
                glass: colour("--car"),
                text: onto("--ego"),
            });
            if (moment.selected > 0) drawFrame(context, view, moment.moved || at(frame, moment.selected));
            Object.assign(shown, { view, frame });
        }

        // A frame around the car that is chosen, where it is or where it is being put.
        function drawFrame(context, view, car) {
            const [x, y] = view.place(car.x, car.y);
            const [length, width] = [(LENGTH + 1.4) * view.scale, (WIDTH + 1.2) * view.scale];
            context.strokeStyle = colour("--focus");
            context.lineWidth = 2.5;
            context.setLineDash([5, 3]);
            context.strokeRect(x - length / 2, y - width / 2, length, width);
            context.setLineDash([]);
        }

        const shown = { view: null, frame: 0 };

        // Where on the road a place of the picture is, and which car is there, or none.
        function pick(px, py) {
            const { view, frame } = shown;
            const [x, y] = [view.left + px / view.scale, (py - view.top) / view.scale - LANE / 2];
            const near = Array.from({ length: vehicles - 1 }, (_, i) => ({ vehicle: i + 1, ...at(frame, i + 1) })).find(
                (car) => Math.abs(car.x - x) < LENGTH / 2 + 1 && Math.abs(car.y - y) < WIDTH / 2 + 0.8,
            );
            return { x, y, vehicle: near ? near.vehicle : null };
        }

        const carAt = (episode, t, vehicle) => at(frameOf(episode, t), vehicle);

        function words(moment) {
            const { ego, count, ahead } = nearest(moment.episode, moment.t);
            const lane = Math.min(Math.max(Math.round(ego.y / LANE), 0), about.lanes - 1) + 1;
            const front = ahead === null ? "nobody seen ahead" : `the next ${Math.round(ahead)} m ahead`;
            return {
                hud: `${Math.round(ego.speed)} m/s in lane ${lane} of ${about.lanes}`,
                alt: `A road. The agent drives ${Math.round(ego.speed)} metres per second in lane ${lane} of ${about.lanes}, counted from the left, and sees ${count} other vehicles, ${front}.`,
            };
        }

        const legend =
            "Full cars are seen by the agent, hollow ones are not; figures are metres per second. Dots show where each action " +
            `would lead in ${2 / about.per_second} seconds, if IDLE followed; a cross: into a crash.`;
        return { draw, words, legend, nearMiss, pick, carAt, vehicles };
    }

    function frames(recording) {
        const [at, ends, bytes] = ["image_at", "image_ends", "images"].map((name) => recording.arrays[name].data);
        const kept = new Map();

        function image(i) {
            if (!kept.has(i)) {
                if (kept.size > 60) kept.delete(kept.keys().next().value);
                const part = bytes.subarray(i > 0 ? ends[i - 1] : 0, ends[i]);
                let text = "";
                for (let j = 0; j < part.length; j += 8192) text += String.fromCharCode(...part.subarray(j, j + 8192));
                const picture = new Image();
                picture.src = `data:image/webp;base64,${btoa(text)}`;
                kept.set(i, picture);
            }
            return kept.get(i);
        }

        // The last image at or before a moment.
        function indexOf(moment) {
            let [low, high] = [0, at.length - 1];
            while (low < high) {
                const middle = Math.ceil((low + high) / 2);
                if (at[middle] <= moment) low = middle;
                else high = middle - 1;
            }
            return low;
        }

        function draw(canvas, moment) {
            const number = recording.starts[moment.episode] + moment.episode + moment.t + (moment.phase >= 1 ? 1 : 0);
            const index = indexOf(number);
            const picture = image(index);
            if (index + 1 < at.length) image(index + 1);
            const paint = () => {
                const ratio = picture.naturalWidth / picture.naturalHeight || 1.5;
                const height = Math.min(340, canvas.clientWidth / ratio);
                const { context, width } = fit(canvas, Math.round(height));
                const w = height * ratio;
                context.drawImage(picture, (width - w) / 2, 0, w, height);
            };
            if (picture.complete && picture.naturalWidth) paint();
            else
                picture.addEventListener(
                    "load",
                    () => {
                        if (recording.shown() === number) paint();
                    },
                    { once: true },
                );
            recording.shown = () => number;
        }

        recording.shown = () => -1;
        const words = (moment) => ({
            hud: "",
            alt: `The world before decision ${moment.t + 1}, as the environment draws it.`,
        });
        return { draw, words, legend: "", nearMiss: () => false };
    }

    function chart(recording) {
        const { data, shape } = recording.arrays.obs;
        const size = shape[1];
        const reach = Float64Array.from({ length: size }, () => 1e-9);
        for (let i = 0; i < data.length; i++) reach[i % size] = Math.max(reach[i % size], Math.abs(data[i]));

        function draw(canvas, moment) {
            const { context, width, height } = fit(canvas, 180);
            const row = recording.starts[moment.episode] + moment.t;
            const step = (width - 40) / size;
            const middle = height / 2 + 8;
            context.fillStyle = colour("--line");
            context.fillRect(20, middle, width - 40, 1);
            context.font = "11px system-ui, sans-serif";
            context.textAlign = "center";
            for (let i = 0; i < size; i++) {
                const value = data[row * size + i];
                const tall = (value / reach[i]) * (height / 2 - 34);
                context.fillStyle = colour("--a0");
                context.fillRect(
                    20 + i * step + step * 0.2,
                    Math.min(middle, middle - tall),
                    step * 0.6,
                    Math.max(Math.abs(tall), 1),
                );
                if (step > 34) {
                    context.fillStyle = colour("--soft");
                    context.fillText(
                        value.toPrecision(3),
                        20 + (i + 0.5) * step,
                        value >= 0 ? middle + 14 : middle - 6,
                    );
                }
            }
        }

        const words = (moment) => {
            const row = recording.starts[moment.episode] + moment.t;
            const numbers = Array.from(data.subarray(row * size, row * size + Math.min(size, 12)), (x) =>
                Number(x).toPrecision(3),
            );
            return {
                hud: "What the agent sees",
                alt: `The observation: ${numbers.join(", ")}${size > 12 ? ", ..." : ""}.`,
            };
        };
        return {
            draw,
            words,
            legend: "Every bar is one number of the observation, relative to its largest.",
            nearMiss: () => false,
        };
    }

    return { make: (recording) => ({ road, frames, chart })[recording.about.view](recording) };
})();
