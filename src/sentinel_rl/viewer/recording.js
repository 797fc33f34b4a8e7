// A recording as the page reads it: arrays, laws, and what really followed.
"use strict";

const Recorded = (() => {
    function decode(type, text) {
        const letters = atob(text);
        const bytes = new Uint8Array(letters.length);
        for (let i = 0; i < letters.length; i++) bytes[i] = letters.charCodeAt(i);
        if (type === "float32") return new Float32Array(bytes.buffer);
        if (type === "int32") return new Int32Array(bytes.buffer);
        if (type === "float16") return Float32Array.from(new Uint16Array(bytes.buffer), half);
        return bytes;
    }

    // A number of 16 bits: sign, 5 bits of exponent, 10 of fraction.
    function half(bits) {
        const [sign, exponent, fraction] = [bits >> 15 ? -1 : 1, (bits >> 10) & 31, bits & 1023];
        return sign * (exponent ? 2 ** (exponent - 15) * (1 + fraction / 1024) : 2 ** -14 * (fraction / 1024));
    }

    const range = (from, count) => Array.from({ length: count }, (_, i) => from + i);

    const GRID = 96;

    // The density of a law on a grid, times the width of a cell: every atom is a normal curve of a common width.
    function smoothed(grid, atoms, probs) {
        let [mean, square] = [0, 0];
        for (let j = 0; j < atoms.length; j++) mean += probs[j] * atoms[j];
        for (let j = 0; j < atoms.length; j++) square += probs[j] * (atoms[j] - mean) ** 2;
        const cell = grid[1] - grid[0];
        const width = Math.max(0.9 * Math.sqrt(square) * atoms.length ** -0.2, cell);
        return grid.map((z) => {
            let sum = 0;
            for (let j = 0; j < atoms.length; j++) sum += probs[j] * Math.exp(-0.5 * ((z - atoms[j]) / width) ** 2);
            return (sum * cell) / (width * Math.sqrt(2 * Math.PI));
        });
    }

    function ticks(low, high) {
        const rough = (high - low) / 4;
        const size = 10 ** Math.floor(Math.log10(rough));
        const step = [1, 2, 2.5, 5, 10].find((m) => m * size >= rough) * size;
        const found = [];
        for (let x = Math.ceil(low / step) * step; x <= high + 1e-9; x += step) found.push(Number(x.toFixed(10)));
        return found;
    }

    const unpack = ({ type, shape, data }) => ({ shape, data: decode(type, data) });

    // A recording that is whole.
    function open(data) {
        const arrays = {};
        for (const [name, packed] of Object.entries(data.arrays)) arrays[name] = unpack(packed);
        const lengths = Array.from(arrays.lengths.data);
        const starts = lengths.map((_, e) => lengths.slice(0, e).reduce((a, b) => a + b, 0));
        const recording = view(data, data.about, arrays, lengths, starts);
        recording.refresh(range(0, arrays.action.shape[0]));
        return { ...recording, since: () => 0, forced: () => false, unknown: "the episode was cut off too soon" };
    }

    const TYPES = { float32: Float32Array, int32: Int32Array, uint8: Uint8Array };
    const BY_FRAME = ["cars", "crashed"];

    // A recording that grows: room for lines of decisions, each with its own place. An episode is a line.
    function grow(data, driver) {
        const { lines, capacity, shapes, atoms } = data.live;
        const about = data.drivers[driver];
        const arrays = {};
        for (const [name, [type, shape]] of Object.entries(shapes[driver])) {
            const rows = BY_FRAME.includes(name) ? lines * (capacity * about.substeps + 1) : lines * capacity;
            const size = shape.reduce((a, b) => a * b, 1);
            arrays[name] = { shape: [rows, ...shape], data: new TYPES[type](rows * size), size };
        }
        if (atoms && driver === 0) arrays.atoms = unpack(atoms);
        arrays.realised = { shape: [lines * capacity], data: new Float32Array(lines * capacity).fill(NaN) };
        const [lengths, starts] = [[], []];
        // Only the first driver tells his reasons here.
        const told = driver === 0 ? about : { ...about, aleatory: null, epistemic: null, parts: [] };
        const recording = view(data, told, arrays, lengths, starts);

        // Put decisions of a line where they belong; returns their numbers.
        function put({ line, first, count, arrays: packed, realised }) {
            while (starts.length <= line) {
                starts.push(starts.length * capacity);
                lengths.push(0);
            }
            const frame = starts[line] * about.substeps + line + (first ? first * about.substeps + 1 : 0);
            for (const [name, one] of Object.entries(packed)) {
                const at = BY_FRAME.includes(name) ? frame : starts[line] + first;
                arrays[name].data.set(unpack(one).data, at * arrays[name].size);
            }
            lengths[line] = first + count;
            if (realised) arrays.realised.data.set(unpack(realised).data, starts[line]);
            const filled = lengths.flatMap((length, e) => range(starts[e], length));
            if (driver === 0) recording.refresh(filled);
            return range(starts[line] + first, count);
        }

        const since = (decision) => Math.floor(decision / capacity) * capacity;
        return { ...recording, since, put, forced: () => false, unknown: "it is not driven to its end" };
    }

    // What is read out of arrays for a decision, counted over all episodes.
    function view(data, about, arrays, lengths, starts) {
        const colours = about.actions.map((_, a) => `--a${a % 8}`);
        const actions = about.actions.length;
        const hasLaws = about.aleatory !== null;
        // One support for all laws, or one for each: then the atoms have the shape of the probabilities.
        const shared = hasLaws && arrays.atoms.shape.length === 1;
        const atoms = shared ? Float64Array.from(arrays.atoms.data) : null;
        const size = hasLaws ? arrays.probs.shape[3] : 0;
        const members = hasLaws ? arrays.probs.shape[1] : 0;
        const taken = (decision) => arrays.action.data[decision];

        // The K laws of an action at a decision, each on its support, and their weights.
        function belief(decision, action) {
            const [supports, laws, weights] = [[], [], new Float64Array(members)];
            for (let k = 0; k < members; k++) {
                const row = (decision * members + k) * actions + action;
                const place = [row * size, (row + 1) * size];
                supports.push(shared ? atoms : Float64Array.from(arrays.atoms.data.subarray(...place)));
                laws.push(arrays.probs.data.subarray(...place));
                weights[k] = arrays.weights.data[row];
            }
            return { supports, laws, weights };
        }

        // The law with the members averaged out: on their support, or on the atoms of all of them.
        function mixture({ supports, laws, weights }) {
            const total = weights.reduce((a, b) => a + b, 0);
            if (!shared) {
                const pairs = laws.flatMap((probs, k) =>
                    Array.from(probs, (p, j) => [supports[k][j], (weights[k] / total) * p]),
                );
                pairs.sort((one, other) => one[0] - other[0]);
                return {
                    atoms: Float64Array.from(pairs, (pair) => pair[0]),
                    probs: Float64Array.from(pairs, (pair) => pair[1]),
                };
            }
            const mixed = new Float64Array(size);
            laws.forEach((probs, k) => {
                for (let j = 0; j < size; j++) mixed[j] += (weights[k] / total) * probs[j];
            });
            return { atoms, probs: mixed };
        }

        // Curves to draw: laws as they are where they share a support, else smoothed onto a grid over the reach.
        function curves(one) {
            const mixed = mixture(one);
            if (shared) return { atoms, laws: one.laws, mixture: mixed.probs };
            const { low, high } = reach;
            const grid = Float64Array.from({ length: GRID }, (_, i) => low + (i / (GRID - 1)) * (high - low));
            return {
                atoms: grid,
                laws: one.laws.map((probs, k) => smoothed(grid, one.supports[k], probs)),
                mixture: smoothed(grid, mixed.atoms, mixed.probs),
            };
        }

        function part(name, decision, action) {
            const index = about.parts.indexOf(name);
            return arrays.parts.data[(decision * about.parts.length + index) * actions + action];
        }

        function recorded(decision, action) {
            const value = arrays.value.data[decision * actions + action];
            if (!hasLaws) return { value };
            const [mean, additive] = [part("mean", decision, action), part("additive", decision, action)];
            return { mean, chance: mean - additive, ignorance: additive - value, value };
        }

        // The range of returns of the whole recording.
        function findReach(decisions) {
            const each = lawsOf(decisions);
            if (!shared) return reachOfAll(each);
            const mean = new Float64Array(size);
            const { data: probs } = arrays.probs;
            const [n, rows] = [size, each.length];
            for (const row of each) for (let j = 0; j < n; j++) mean[j] += probs[row * n + j];
            let sum = 0;
            let [first, last] = [0, n - 1];
            for (let j = 0; j < n; j++) {
                const before = sum / rows;
                sum += mean[j];
                if (before < 0.002) first = j;
                if (before < 0.998) last = j;
            }
            const [low, high] = [atoms[Math.max(first - 1, 0)], atoms[Math.min(last + 1, n - 1)]];
            return { low, high };
        }

        // The part of that range where most of the curves of a decision and some numbers lie. It is cut in quarters, so that
        // it seldom moves from one decision to the next; what lies outside is drawn at its edge.
        function closeUp(drawn, numbers) {
            const quarter = (reach.high - reach.low) / 4;
            const ends = [...drawn.flatMap(middle), ...numbers].map((end) => (end - reach.low) / quarter);
            const first = Math.min(Math.max(Math.floor(Math.min(...ends) + 1e-9), 0), 3);
            const last = Math.max(Math.min(Math.ceil(Math.max(...ends) - 1e-9), 4), first + 1);
            const [low, high] = [reach.low + first * quarter, reach.low + last * quarter];
            return { low, high, ticks: ticks(low, high) };
        }

        // Where all but the outer fiftieths of a curve lie.
        function middle({ atoms: places, mixture: probs }) {
            const total = probs.reduce((a, b) => a + b, 0);
            let sum = 0;
            let [first, last] = [0, probs.length - 1];
            for (let j = 0; j < probs.length; j++) {
                if (sum < 0.02 * total) first = j;
                if (sum < 0.98 * total) last = j;
                sum += probs[j];
            }
            return [places[first], places[last]];
        }

        // The numbers of some laws, 4000 at most.
        function lawsOf(decisions) {
            const own = members * actions;
            const every = decisions.length * own;
            const step = Math.max(1, Math.floor(every / 4000));
            const found = [];
            for (let i = 0; i < every; i += step) found.push(decisions[Math.floor(i / own)] * own + (i % own));
            return found;
        }

        // From the outer atoms of some laws, few of which may lie outside.
        function reachOfAll(each) {
            const { data: places } = arrays.atoms;
            const [lows, highs] = [
                each.map((row) => places[row * size]),
                each.map((row) => places[(row + 1) * size - 1]),
            ];
            for (const ends of [lows, highs]) ends.sort((a, b) => a - b);
            const skipped = Math.floor(0.002 * lows.length);
            const [low, high] = [lows[skipped], highs[highs.length - 1 - skipped]];
            const pad = 0.04 * (high - low) || 0.5;
            return { low: low - pad, high: high + pad };
        }

        // The probability, under the law predicted for the action taken, of less than what really followed.
        function rank(decision) {
            const realised = arrays.realised.data[decision];
            if (Number.isNaN(realised)) return null;
            const { atoms: places, probs: mixed } = mixture(belief(decision, taken(decision)));
            let sum = 0;
            for (let j = 0; j < places.length; j++) {
                if (places[j] > realised) {
                    const width = j ? places[j] - places[j - 1] : 1;
                    const share = j ? (realised - places[j - 1]) / width : 0;
                    return Math.min(
                        1,
                        sum - (j ? mixed[j - 1] / 2 : 0) + (share * (mixed[j] + (j ? mixed[j - 1] : 0))) / 2,
                    );
                }
                sum += mixed[j];
            }
            return 1;
        }

        const base = {
            about,
            words: data.words,
            made: data.made,
            arrays,
            lengths,
            starts,
            colours,
            actions,
            hasLaws,
            members,
        };
        const ranks = Array.from({ length: arrays.action.shape[0] }, () => null);
        const reach = { low: 0, high: 1 };

        // Find out again what depends on the decisions that there are.
        function refresh(decisions) {
            if (!hasLaws) return;
            for (const decision of decisions) ranks[decision] = rank(decision);
            Object.assign(reach, findReach(decisions));
        }

        return { ...base, taken, belief, mixture, curves, part, recorded, ranks, closeUp, refresh };
    }

    return { open, grow, range };
})();
