// Reads cases as JSON from a file, computes each with the page's measures, and prints the numbers as JSON.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const [script, file] = process.argv.slice(2);
const Risk = createRequire(import.meta.url)(script);
const cases = JSON.parse(readFileSync(file, "utf8"));
const measure = (text) => {
    const found = Risk.parse(text);
    if (found === null) throw new Error(`${text} is not read`);
    return found;
};

function numbers(one) {
    if (one.kind === "law") return measure(one.measure).value(one.atoms, one.probs);
    if (one.kind === "samples") return Risk.ofSamples(measure(one.measure), one.atoms, one.probs);
    const told = Risk.assess(
        Array.isArray(one.atoms[0]) ? one.atoms : one.laws.map(() => one.atoms),
        one.laws,
        one.weights,
        measure(one.epistemic),
        measure(one.aleatory),
        one.aggregate,
    );
    return [told.mean, told.chance, told.ignorance, told.value, ...told.risks];
}

console.log(JSON.stringify(cases.map(numbers)));
