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

    function ticks(low, high) {
        const rough = (high - low) / 4;
        const size = 10 ** Math.floor(Math.log10(rough));
        const step = [1, 2, 2.5, 5, 10].find((m) => m * size >= rough) * size;
        const found = [];
        for (let x = Math.ceil(low / step) * step; x <= high + 1e-9; x += step) found.push(Number(x.toFixed(10)));
        return found;
    }

    // The arrays and words of a recording, with what is read out of them for a decision, counted over all episodes.
    function open(data) {
        const arrays = {};
        for (const [name, { type, shape, data: text }] of Object.entries(data.arrays)) {
            arrays[name] = { shape, data: decode(type, text) };
        }
        const { about } = data;
        const lengths = Array.from(arrays.lengths.data);
        const starts = lengths.map((_, e) => lengths.slice(0, e).reduce((a, b) => a + b, 0));
        const colours = about.actions.map((_, a) => `--a${a % 8}`);
        const actions = about.actions.length;
        const hasLaws = about.aleatory !== null;
        const atoms = hasLaws ? Float64Array.from(arrays.atoms.data) : null;
        const members = hasLaws ? arrays.probs.shape[1] : 0;
        const taken = (decision) => arrays.action.data[decision];

        // The K laws of an action at a decision, and their weights.
        function belief(decision, action) {
            const n = atoms.length;
            const laws = [];
            const weights = new Float64Array(members);
            for (let k = 0; k < members; k++) {
                const row = (decision * members + k) * actions + action;
                laws.push(arrays.probs.data.subarray(row * n, (row + 1) * n));
                weights[k] = arrays.weights.data[row];
            }
            return { laws, weights };
        }

        function mixture({ laws, weights }) {
            const total = weights.reduce((a, b) => a + b, 0);
            const mixed = new Float64Array(atoms.length);
            laws.forEach((probs, k) => {
                for (let j = 0; j < mixed.length; j++) mixed[j] += (weights[k] / total) * probs[j];
            });
            return mixed;
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

        // One range of returns for the whole recording, so that curves can be compared from decision to decision.
        function findReach() {
            const mean = new Float64Array(atoms.length);
            const { data } = arrays.probs;
            const n = atoms.length;
            const step = Math.max(1, Math.floor(data.length / n / 4000)) * n;
            let rows = 0;
            for (let row = 0; row < data.length; row += step, rows++)
                for (let j = 0; j < n; j++) mean[j] += data[row + j];
            let sum = 0;
            let [first, last] = [0, n - 1];
            for (let j = 0; j < n; j++) {
                const before = sum / rows;
                sum += mean[j];
                if (before < 0.002) first = j;
                if (before < 0.998) last = j;
            }
            const [low, high] = [atoms[Math.max(first - 1, 0)], atoms[Math.min(last + 1, n - 1)]];
            return { low, high, ticks: ticks(low, high) };
        }

        // The probability, under the law predicted for the action taken, of less than what really followed.
        function rank(decision) {
            const realised = arrays.realised.data[decision];
            if (Number.isNaN(realised)) return null;
            const mixed = mixture(belief(decision, taken(decision)));
            let sum = 0;
            for (let j = 0; j < atoms.length; j++) {
                if (atoms[j] > realised) {
                    const width = j ? atoms[j] - atoms[j - 1] : 1;
                    const share = j ? (realised - atoms[j - 1]) / width : 0;
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
            atoms,
            members,
        };
        const ranks = hasLaws ? range(0, arrays.action.shape[0]).map(rank) : [];
        return { ...base, taken, belief, mixture, part, recorded, ranks, reach: hasLaws ? findReach() : null };
    }

    return { open, range };
})();
