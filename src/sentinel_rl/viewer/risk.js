// Risk measures of laws and beliefs in double precision: the formulas of sentinel_rl.risk, which its tests compare.
// A law is two arrays, ascending atoms and probabilities. Higher is better.
"use strict";

const Risk = (() => {
    const TINY = 2.2250738585072014e-308;
    const ROOT_2_PI = Math.sqrt(2 * Math.PI);
    // From here on the tail of the normal law is a continued fraction, before a power series.
    const TAIL = 3;
    const FRACTION_TERMS = 50;

    const clip = (x, low, high) => Math.min(Math.max(x, low), high);

    // phi(x) / Phi(-x) for x >= TAIL, by the continued fraction x + 1 / (x + 2 / (x + 3 / ...)).
    function hazard(x) {
        let fraction = x;
        for (let k = FRACTION_TERMS; k >= 1; k--) fraction = x + k / fraction;
        return fraction;
    }

    const density = (x) => Math.exp(-0.5 * x * x) / ROOT_2_PI;

    // The normal CDF: 1/2 + phi(x) (x + x^3/3 + x^5/(3 5) + ...) in the middle, exact in the lower tail.
    function normalCdf(x) {
        if (x < -TAIL) return density(x) / hazard(-x);
        if (x > TAIL) return 1 - density(x) / hazard(x);
        let term = x;
        let sum = x;
        for (let k = 3; Math.abs(term) > 1e-17 * Math.abs(sum); k += 2) {
            term *= (x * x) / k;
            sum += term;
        }
        return 0.5 + density(x) * sum;
    }

    // The inverse for p <= 1/2, by Newton's method on log Phi, which is concave.
    function lowerQuantile(p) {
        if (p >= 0.5) return 0;
        const target = Math.log(p);
        let x = p > 1e-5 ? (Math.pow(p, 0.135) - Math.pow(1 - p, 0.135)) / 0.1975 : -Math.sqrt(-2 * target);
        for (let turn = 0; turn < 40; turn++) {
            const tail = x < -TAIL;
            const slope = tail ? hazard(-x) : density(x) / normalCdf(x);
            const height = tail ? -0.5 * x * x - Math.log(ROOT_2_PI * slope) : Math.log(normalCdf(x));
            const move = (height - target) / slope;
            x -= move;
            if (Math.abs(move) <= 1e-15 * (1 + Math.abs(x))) break;
        }
        return x;
    }

    // Phi^-1(u), given also s = 1 - u with all its digits.
    const quantileOf = (u, s) => (u > 0.5 ? -lowerQuantile(clip(s, TINY, 0.5)) : lowerQuantile(clip(u, TINY, 0.5)));
    const logCdf = (u, s) => (u > 0.5 ? Math.log1p(-Math.min(s, 0.5)) : Math.log(Math.max(u, TINY)));
    const pinned = (u, s, inside) => (u <= 0 ? 0 : s <= 0 ? 1 : inside());

    function logAddExp(a, b) {
        const high = Math.max(a, b);
        return high + Math.log1p(Math.exp(Math.min(a, b) - high));
    }

    function reaches(u, s, level) {
        const excess = u > 0.5 ? 1 - level - s : u - level;
        return excess >= -4 * Number.EPSILON;
    }

    // rho_g = z_n - sum_j g(F_j) (z_{j+1} - z_j), F summed from below and 1 - F from above.
    function distorted(g) {
        return (atoms, probs) => {
            const n = atoms.length;
            const survival = new Float64Array(n);
            for (let j = n - 2; j >= 0; j--) survival[j] = survival[j + 1] + probs[j + 1];
            let cdf = 0;
            let sum = 0;
            for (let j = 0; j < n - 1; j++) {
                cdf += probs[j];
                sum += g(clip(cdf, 0, 1), clip(survival[j], 0, 1)) * (atoms[j + 1] - atoms[j]);
            }
            return atoms[n - 1] - sum;
        };
    }

    function mean(atoms, probs) {
        let sum = 0;
        for (let j = 0; j < atoms.length; j++) sum += probs[j] * atoms[j];
        return sum;
    }

    function variance(atoms, probs) {
        const centre = mean(atoms, probs);
        let sum = 0;
        for (let j = 0; j < atoms.length; j++) sum += probs[j] * (atoms[j] - centre) ** 2;
        return sum;
    }

    function worst(atoms, probs) {
        for (let j = 0; j < atoms.length; j++) if (probs[j] > 0) return atoms[j];
        return NaN;
    }

    function best(atoms, probs) {
        for (let j = atoms.length - 1; j >= 0; j--) if (probs[j] > 0) return atoms[j];
        return NaN;
    }

    // log E exp(-rate distance) for rate * distance >= 0.
    function logLaplace(probs, distance, rate) {
        let shortfall = 0;
        let total = 0;
        for (let j = 0; j < probs.length; j++) {
            if (probs[j] === 0) continue;
            shortfall += probs[j] * Math.expm1(-rate * distance[j]);
            total += probs[j] * Math.exp(-rate * distance[j]);
        }
        return shortfall > -0.5 ? Math.log1p(shortfall) : Math.log(total);
    }

    function entropic(atoms, probs, beta) {
        const low = worst(atoms, probs);
        const high = best(atoms, probs);
        if (Math.abs(beta) * (high - low) < Math.sqrt(Number.EPSILON)) {
            return mean(atoms, probs) - 0.5 * beta * variance(atoms, probs);
        }
        const edge = beta >= 0 ? low : high;
        const distance = Float64Array.from(atoms, (z) => z - edge);
        return edge - logLaplace(probs, distance, beta) / beta;
    }

    // The rate t at which the law tilted by exp(-t Z) is -log alpha nats away, for distances in [0, 1]: bisection in log t.
    function optimalRate(probs, unit, logAlpha) {
        let low = -36;
        let high = 46;
        for (let turn = 0; turn < 48; turn++) {
            const middle = 0.5 * (low + high);
            const t = Math.exp(middle);
            let mass = 0;
            let moment = 0;
            for (let j = 0; j < probs.length; j++) {
                const tilted = probs[j] * Math.exp(-t * unit[j]);
                mass += tilted;
                moment += tilted * unit[j];
            }
            const divergence = (-t * moment) / mass - logLaplace(probs, unit, t);
            if (divergence < -logAlpha) low = middle;
            else high = middle;
        }
        return Math.exp(0.5 * (low + high));
    }

    function evar(atoms, probs, alpha) {
        const low = worst(atoms, probs);
        const span = best(atoms, probs) - low || 1;
        const unit = Float64Array.from(atoms, (z, j) => (probs[j] === 0 ? 0 : (z - low) / span));
        const logAlpha = Math.log(Math.max(alpha, TINY));
        const t = optimalRate(probs, unit, logAlpha);
        return low + (span * (logAlpha - logLaplace(probs, unit, t))) / t;
    }

    function semideviation(atoms, probs, c, p) {
        const centre = mean(atoms, probs);
        let scale = 0;
        for (let j = 0; j < atoms.length; j++) if (probs[j] !== 0) scale = Math.max(scale, centre - atoms[j]);
        if (scale === 0) return centre;
        let moment = 0;
        for (let j = 0; j < atoms.length; j++) {
            if (probs[j] !== 0 && centre > atoms[j]) moment += probs[j] * Math.pow((centre - atoms[j]) / scale, p);
        }
        return centre - c * scale * Math.pow(moment, 1 / p);
    }

    const share = (start) => ({ name: "alpha", low: 0.01, high: 1, start, allowed: (x) => x > 0 && x <= 1 });
    const factor = { name: "c", low: 0, high: 2, start: 1, allowed: (x) => x >= 0 };

    // Of every measure: what it is called, its parameters with the range that sliders offer, and its value. `g` is there
    // where it is a distortion of the CDF.
    const MEASURES = {
        expectation: { label: "mean (neutral)", parameters: [], g: () => (u) => u },
        cvar: { label: "CVaR", parameters: [share(0.25)], g: (alpha) => (u) => Math.min(u / Math.max(alpha, TINY), 1) },
        var: {
            label: "VaR (quantile)",
            parameters: [share(0.25)],
            g: (alpha) => (u, s) => (reaches(u, s, alpha) ? 1 : 0),
        },
        wang: {
            label: "Wang",
            parameters: [{ name: "alpha", low: 0.01, high: 0.99, start: 0.25, allowed: (x) => x > 0 && x < 1 }],
            g: (alpha) => {
                const shift = quantileOf(alpha, 1 - alpha);
                return (u, s) => pinned(u, s, () => normalCdf(quantileOf(u, s) - shift));
            },
        },
        evar: { label: "EVaR", parameters: [share(0.25)], value: evar },
        entropic: {
            label: "entropic",
            parameters: [{ name: "beta", low: -1, high: 2, start: 0.5, allowed: Number.isFinite }],
            value: entropic,
        },
        proportional_hazard: {
            label: "proportional hazard",
            parameters: [{ name: "kappa", low: 0.05, high: 1, start: 0.5, allowed: (x) => x > 0 && x <= 1 }],
            g: (kappa) => (u, s) => pinned(u, s, () => Math.exp(kappa * logCdf(u, s))),
        },
        dual_power: {
            label: "dual power",
            parameters: [{ name: "k", low: 1, high: 10, start: 2, allowed: (x) => x >= 1 }],
            g: (k) => (u, s) => -Math.expm1(k * logCdf(s, u)),
        },
        minmaxvar: {
            label: "MINMAXVAR",
            parameters: [{ name: "x", low: 0, high: 4, start: 1, allowed: (x) => x >= 0 }],
            g: (x) => (u, s) =>
                pinned(u, s, () => {
                    const root = logCdf(u, s) / (1 + x);
                    const gone =
                        root < -0.5 ? Math.log1p(-Math.exp(root)) : Math.log(Math.max(-Math.expm1(root), TINY));
                    return -Math.expm1((1 + x) * gone);
                }),
        },
        cpw: {
            label: "prospect weighting",
            parameters: [{ name: "eta", low: 0.3, high: 1, start: 0.71, allowed: (x) => x > 0 && x <= 1 }],
            g: (eta) => (u, s) =>
                pinned(u, s, () => {
                    const [low, high] = [eta * logCdf(u, s), eta * logCdf(s, u)];
                    return Math.exp(low - logAddExp(low, high) / eta);
                }),
        },
        mean_std: {
            label: "mean - c sd",
            parameters: [factor],
            value: (atoms, probs, c = 1) => mean(atoms, probs) - c * Math.sqrt(Math.max(variance(atoms, probs), 0)),
        },
        mean_variance: {
            label: "mean - c variance",
            parameters: [{ ...factor, high: 0.5, start: 0.1 }],
            value: (atoms, probs, c = 1) => mean(atoms, probs) - c * variance(atoms, probs),
        },
        mean_semideviation: {
            label: "mean - semideviation",
            parameters: [
                { name: "c", low: 0, high: 1, start: 1, allowed: (x) => x >= 0 && x <= 1 },
                { name: "p", low: 1, high: 4, start: 2, allowed: (x) => x >= 1 },
            ],
            value: (atoms, probs, c = 1, p = 2) => semideviation(atoms, probs, c, p),
        },
        worst_case: { label: "worst case", parameters: [], value: worst },
        best_case: { label: "best case", parameters: [], value: best },
    };

    // A measure of a name and its parameters.
    function make(name, numbers) {
        const kind = MEASURES[name];
        const g = kind.g ? kind.g(...numbers) : null;
        const value = g ? distorted(g) : (atoms, probs) => kind.value(atoms, probs, ...numbers);
        return { name, numbers, kind, g, value, text: numbers.length ? `${name}:${numbers.join(",")}` : name };
    }

    // Read "cvar:0.25"; null for what is not a measure. The text may come from anywhere.
    function parse(text) {
        const found = /^([a-z_]{1,30})(?::([-+.,0-9e]{1,60}))?$/.exec(text);
        if (!found || !Object.hasOwn(MEASURES, found[1])) return null;
        const { parameters } = MEASURES[found[1]];
        const given = found[2] ? found[2].split(",").map((number) => (number === "" ? NaN : Number(number))) : [];
        const numbers = parameters.map((one, i) => (i < given.length ? given[i] : one.start));
        const fine =
            given.length <= parameters.length &&
            numbers.every((x, i) => Number.isFinite(x) && parameters[i].allowed(x));
        return fine ? make(found[1], numbers) : null;
    }

    // A measure of the law that puts mass w_i on x_i, in any order; the weights need not sum to 1.
    function ofSamples(measure, values, weights) {
        let [low, high, largest] = [Infinity, -Infinity, 0];
        for (let i = 0; i < values.length; i++) {
            if (weights[i] > 0) {
                low = Math.min(low, values[i]);
                high = Math.max(high, values[i]);
                largest = Math.max(largest, weights[i]);
            }
        }
        const scaled = Array.from(weights, (w) => w / largest);
        const total = scaled.reduce((a, b) => a + b, 0);
        const pairs = Array.from(values, (x, i) => [clip(x, low, high), scaled[i] / total]).sort((a, b) => a[0] - b[0]);
        return measure.value(
            Float64Array.from(pairs, (pair) => pair[0]),
            Float64Array.from(pairs, (pair) => pair[1]),
        );
    }

    function weighted(values, weights) {
        let sum = 0;
        let total = 0;
        for (let i = 0; i < values.length; i++) {
            sum += weights[i] * values[i];
            total += weights[i];
        }
        return sum / total;
    }

    // rho_E of the law that puts mass w_i on the risk of member i; "scale" multiplies values by weights instead.
    function across(epistemic, risks, weights, aggregate) {
        if (aggregate === "scale") {
            return ofSamples(
                epistemic,
                Array.from(risks, (risk, i) => risk * weights[i]),
                Array.from(risks, () => 1),
            );
        }
        return ofSamples(epistemic, risks, weights);
    }

    // The decomposed composite risk of K laws, each on its support: mean - chance - ignorance = value.
    function assess(supports, laws, weights, epistemic, aleatory, aggregate = "belief") {
        const risks = laws.map((probs, k) => aleatory.value(supports[k], probs));
        const middle = weighted(
            laws.map((probs, k) => mean(supports[k], probs)),
            weights,
        );
        const additive = weighted(risks, weights);
        const value = across(epistemic, risks, weights, aggregate);
        return { mean: middle, chance: middle - additive, ignorance: additive - value, value, additive, risks };
    }

    // The return below which a measure gives outcomes more weight than their probability; null where there is none.
    function emphasis(measure, atoms, probs) {
        if (measure.name === "worst_case") return worst(atoms, probs);
        if (measure.name === "best_case" || measure.name === "expectation") return null;
        if (measure.name === "entropic") return measure.numbers[0] > 0 ? measure.value(atoms, probs) : null;
        if (measure.name === "evar") return measure.numbers[0] < 1 ? tilt(atoms, probs, measure.numbers[0]) : null;
        if (!measure.g) return measure.numbers[0] > 0 ? mean(atoms, probs) : null;
        let [u, most, at] = [0, 1e-9, null];
        for (let j = 0; j < atoms.length - 1; j++) {
            u += probs[j];
            const gain = measure.g(clip(u, 0, 1), clip(1 - u, 0, 1)) - u;
            if (gain > most) [most, at] = [gain, atoms[j]];
        }
        return at;
    }

    function tilt(atoms, probs, alpha) {
        const low = worst(atoms, probs);
        const span = best(atoms, probs) - low || 1;
        const unit = Float64Array.from(atoms, (z, j) => (probs[j] === 0 ? 0 : (z - low) / span));
        const t = optimalRate(probs, unit, Math.log(Math.max(alpha, TINY)));
        return low - (span * logLaplace(probs, unit, t)) / t;
    }

    return {
        MEASURES,
        make,
        parse,
        mean,
        variance,
        ofSamples,
        across,
        weighted,
        assess,
        emphasis,
        normalCdf,
        quantileOf,
    };
})();

if (typeof module !== "undefined") module.exports = Risk;
