// The page: its state, what follows from it, and the controls. All text is set as text, never as markup.
"use strict";

(() => {
  const GRID = 33;
  const SPEEDS = [0.0625, 0.125, 0.25, 0.5, 1, 2, 4, 8];
  const BUDGET = 10; // milliseconds of computing between two pictures
  const get = (id) => document.getElementById(id);
  const recording = open(JSON.parse(get("recording").textContent));
  const { about, arrays, words, starts, lengths } = recording;
  const actions = about.actions.length;
  const hasLaws = about.aleatory !== null;
  const world = World.make(recording);
  const own = { aleatory: hasLaws ? Risk.parse(about.aleatory) : null, epistemic: hasLaws ? Risk.parse(about.epistemic) : null };
  // A measure of the user's own cannot be computed here: then the values are those that were recorded.
  const known = own.aleatory !== null && own.epistemic !== null;
  const state = {
    episode: 0, t: 0, phase: 0, playing: false, compared: null, speed: 1,
    aleatory: known ? own.aleatory : null, epistemic: known ? own.epistemic : null,
  };
  let table = new Map(); // reasons by decision, for the measures of now
  let queue = []; // decisions whose reasons are still to be computed

  // ---- the recording ------------------------------------------------------------------------------------------

  function open(data) {
    const arrays = {};
    for (const [name, { type, shape, data: text }] of Object.entries(data.arrays)) {
      arrays[name] = { shape, data: decode(type, text) };
    }
    const lengths = Array.from(arrays.lengths.data);
    const starts = lengths.map((_, e) => lengths.slice(0, e).reduce((a, b) => a + b, 0));
    const colours = data.about.actions.map((_, a) => `--a${a % 8}`);
    return { about: data.about, words: data.words, made: data.made, arrays, lengths, starts, colours };
  }

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

  const atoms = hasLaws ? Float64Array.from(arrays.atoms.data) : null;
  const members = hasLaws ? arrays.probs.shape[1] : 0;

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
    laws.forEach((probs, k) => { for (let j = 0; j < mixed.length; j++) mixed[j] += (weights[k] / total) * probs[j]; });
    return mixed;
  }

  // ---- reasons ------------------------------------------------------------------------------------------------

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

  function reasonsAt(decision) {
    const each = Array.from({ length: actions }, (_, a) => {
      if (!state.aleatory) return recorded(decision, a);
      const { laws, weights } = belief(decision, a);
      return Risk.assess(atoms, laws, weights, state.epistemic, state.aleatory, about.aggregate);
    });
    const top = (name) => each.reduce((best, one, a) => (one[name] > each[best][name] ? a : best), 0);
    const best = top("value");
    const others = each.map((_, a) => a).filter((a) => a !== best);
    const second = others.length ? others.reduce((b, a) => (each[a].value > each[b].value ? a : b)) : null;
    return { each, best, second, neutral: hasLaws ? top("mean") : best };
  }

  function reasons(decision) {
    if (!table.has(decision)) table.set(decision, reasonsAt(decision));
    return table.get(decision);
  }

  // Compute the reasons of all decisions of the episode bit by bit, this one first, without making anyone wait.
  function recompute() {
    table = new Map();
    queue = [current(), ...range(starts[state.episode], lengths[state.episode])];
    pump();
  }

  function pump() {
    const end = performance.now() + BUDGET;
    while (queue.length && performance.now() < end) reasons(queue.shift());
    document.body.dataset.settled = String(queue.length === 0);
    showTimeline();
    if (queue.length) requestAnimationFrame(pump);
  }

  const range = (from, count) => Array.from({ length: count }, (_, i) => from + i);
  const current = () => starts[state.episode] + state.t;
  const taken = (decision) => arrays.action.data[decision];
  const isOwn = () => known && state.aleatory.text === own.aleatory.text && state.epistemic.text === own.epistemic.text;

  // ---- words --------------------------------------------------------------------------------------------------

  function short(x) {
    if (!Number.isFinite(x)) return String(x);
    if (Math.abs(x) < 5e-4) return "0";
    return Math.abs(x) >= 100 ? x.toFixed(0) : String(Number(x.toPrecision(2)));
  }

  function tell(name, entries = {}) {
    return words[name].replace(/\{(\w+)\}/g, (_, key) => (typeof entries[key] === "number" ? short(entries[key]) : entries[key]));
  }

  function compared(difference, above, below) {
    if (Math.abs(difference) < 5e-4) return tell("the_same");
    return tell(difference > 0 ? above : below, { number: Math.abs(difference) });
  }

  function sentence({ each, best, second }) {
    const names = { best: about.actions[best], second: second === null ? "" : about.actions[second] };
    const one = each[best];
    const form = (second === null ? "only_action" : "decision") + (hasLaws ? "" : "_without_laws");
    const margin = second === null ? 0 : one.value - each[second].value;
    return tell(form, { ...names, margin, chance: one.chance, ignorance: one.ignorance });
  }

  function whyNot({ each, best }, other) {
    const [mine, its] = [each[other], each[best]];
    const entries = { other: about.actions[other], margin: its.value - mine.value };
    if (!hasLaws) return tell("why_not_without_laws", entries);
    return tell("why_not", {
      ...entries,
      mean: compared(mine.mean - its.mean, "higher", "lower"),
      chance: compared(mine.chance - its.chance, "more", "less"),
      ignorance: compared(mine.ignorance - its.ignorance, "more", "less"),
    });
  }

  // A number of a table: two decimals, less for large ones, and two digits for small values without laws.
  function fixed(x) {
    const size = Math.abs(x);
    const small = !hasLaws && size < 0.1;
    return (small ? short(x) : x.toFixed(size >= 1000 ? 0 : size >= 100 ? 1 : 2)).replace("-", "\u2212");
  }

  // ---- the decision -------------------------------------------------------------------------------------------

  // One range of returns for the whole recording, so that curves can be compared from decision to decision.
  const reach = hasLaws ? findReach() : null;

  function findReach() {
    const mean = new Float64Array(atoms.length);
    const { data } = arrays.probs;
    const n = atoms.length;
    const step = Math.max(1, Math.floor(data.length / n / 4000)) * n;
    let rows = 0;
    for (let row = 0; row < data.length; row += step, rows++) for (let j = 0; j < n; j++) mean[j] += data[row + j];
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

  function ticks(low, high) {
    const rough = (high - low) / 4;
    const size = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 2.5, 5, 10].find((m) => m * size >= rough) * size;
    const found = [];
    for (let x = Math.ceil(low / step) * step; x <= high + 1e-9; x += step) found.push(Number(x.toFixed(10)));
    return found;
  }

  const rows = about.actions.map((name, a) => {
    const row = document.createElement("li");
    row.className = "action";
    row.style.setProperty("--mark", `var(${recording.colours[a]})`);
    const button = element("button", "name");
    button.type = "button";
    const badge = element("span", "badge");
    button.append(element("span", "number", String(a + 1)), name, badge);
    const [law, bar, worth] = [element("div", "law"), element("div", "bar"), element("div", "worth")];
    const [lawChart, barChart, sum] = [Charts.make("svg", { role: "img" }), Charts.make("svg", { role: "img" }), element("div", "sum")];
    law.append(lawChart);
    bar.append(barChart, sum);
    row.append(button, law, bar, worth);
    row.addEventListener("click", () => compare(a));
    get("actions").append(row);
    return { row, button, badge, lawChart, barChart, sum, worth };
  });

  function element(name, style, text = "") {
    const made = document.createElement(name);
    made.className = style;
    made.textContent = text;
    return made;
  }

  function showDecision() {
    const told = reasons(current());
    const shown = sentence(told);
    if (get("sentence").textContent !== shown) get("sentence").textContent = shown;
    get("aside").textContent = aside(told);
    get("sentence").style.setProperty("--mark", `var(${recording.colours[told.best]})`);
    get("whynot").textContent = whyNotWords(told);
    document.body.dataset.best = String(told.best);
    const values = told.each.map((one) => one.value);
    const tops = told.each.map((one) => (hasLaws ? one.mean : one.value));
    const low = Math.min(...values, ...tops);
    const high = Math.max(...values, ...tops);
    const pad = (high - low) * 0.04 || 0.5;
    const span = { low: low - pad, high: high + pad, best: told.each[told.best].value };
    const laws = hasLaws ? told.each.map((_, a) => belief(current(), a)) : [];
    rows.forEach((row, a) => showAction(row, a, told, span, laws[a], { ...reach, top: heightOf(laws) }));
  }

  // The height of the charts of all laws: one narrow law is cut off rather than that it flattens all others.
  function heightOf(laws) {
    if (!laws.length) return 1;
    const peak = (probs) => probs.reduce((most, p) => Math.max(most, p), 0);
    const highest = Math.max(...laws.flatMap(({ laws: each }) => each.map(peak)));
    const usual = laws.map((one) => peak(mixture(one))).sort((a, b) => a - b)[Math.floor(laws.length / 2)];
    return 1.05 * Math.min(highest, 2.5 * usual) || 1;
  }

  function whyNotWords(told) {
    if (state.compared === null) return `Why not another one? Press its number, or choose it in the list.`;
    if (state.compared === told.best) return `${about.actions[told.best]} is what it prefers.`;
    return `Why not ${about.actions[state.compared]}? ${whyNot(told, state.compared)}.`;
  }

  function aside({ best, neutral }) {
    const did = taken(current());
    if (did !== best && isOwn()) return `The agent took ${about.actions[did]}: the two are equal to the precision it computes in.`;
    if (did !== best) return `With these measures it would choose ${about.actions[best]}; it took ${about.actions[did]}.`;
    if (hasLaws && neutral !== best) return `Caution changed its mind: by the mean alone it would be ${about.actions[neutral]}.`;
    if (hasLaws && !about.note) return "The mean alone would choose the same.";
    return about.note;
  }

  function showAction(row, a, told, span, laws, lawRange) {
    const one = told.each[a];
    const name = about.actions[a];
    row.row.classList.toggle("best", a === told.best);
    row.row.classList.toggle("compared", a === state.compared && a !== told.best);
    row.button.setAttribute("aria-pressed", String(a === state.compared));
    const did = taken(current()) === a;
    row.badge.textContent = a === told.best ? (did ? "chosen" : "would be chosen") : did ? "was taken" : "";
    const behind = told.each[told.best].value - one.value;
    row.worth.replaceChildren(fixed(one.value), element("small", "", a === told.best ? "best" : `${short(behind)} less`));
    const colour = recording.colours[a];
    const tips = { valueWords: `${words.value} ${fixed(one.value)}`, colour };
    if (!hasLaws) return showEstimate(row, a, one, tips, told);
    Object.assign(tips, {
      meanWords: `${words.mean} ${fixed(one.mean)}`,
      chanceWords: `${words.chance} costs ${short(one.chance)}`,
      ignoranceWords: `${words.ignorance} costs ${short(one.ignorance)}`,
    });
    row.sum.textContent = `${fixed(one.mean)} \u2212 ${fixed(one.chance)} \u2212 ${fixed(one.ignorance)} = ${fixed(one.value)}`.replaceAll("\u2212 \u2212", "+ ");
    const mixed = mixture(laws);
    const until = state.aleatory ? Risk.emphasis(state.aleatory, atoms, mixed) : null;
    const label = `${name}: ${members} laws of the return; ${tips.meanWords}, ${tips.valueWords}`;
    const shown = a === actions - 1 ? lawRange.ticks : [];
    Charts.laws(row.lawChart, { ...one, ...tips, ...laws, atoms, mixture: mixed, until, label, ticks: shown }, lawRange);
    const parts = `${name}: ${tips.meanWords}, ${tips.chanceWords}, ${tips.ignoranceWords}, ${tips.valueWords}`;
    return Charts.sum(row.barChart, { ...one, ...tips, label: parts }, span);
  }

  function showEstimate(row, a, one, tips, told) {
    const parts = about.parts.map((name) => [name, part(name, current(), a)]);
    row.sum.textContent = parts.map(([name, number]) => `${name} ${short(number)}`).join(" \u00b7 ");
    const all = (name) => told.each.map((_, b) => part(name, current(), b));
    const centre = about.parts.includes("mean") ? part("mean", current(), a) : one.value;
    const deviations = ["epistemic_sd", "aleatory_sd"].filter((name) => about.parts.includes(name));
    const spreads = deviations.map((name) => ({ centre, sd: part(name, current(), a), words: `${name} ${short(part(name, current(), a))}` }));
    const widest = deviations.length ? Math.max(...deviations.flatMap(all)) : 0;
    const values = [...told.each.map((each) => each.value), ...(about.parts.includes("mean") ? all("mean") : [])];
    const [low, high] = [Math.min(...values) - widest, Math.max(...values) + widest];
    const pad = (high - low) * 0.05 || 0.5;
    const label = `${about.actions[a]}: ${tips.valueWords}; ${row.sum.textContent}`;
    Charts.estimate(row.barChart, { ...one, ...tips, spreads, label }, { low: low - pad, high: high + pad });
  }

  // ---- other measures -----------------------------------------------------------------------------------------

  function buildMeasure(role) {
    const place = get(role);
    const select = document.createElement("select");
    select.setAttribute("aria-label", place.querySelector("legend").textContent);
    if (!known) select.append(new Option(`as recorded (${about[role]})`, ""));
    for (const [name, { label }] of Object.entries(Risk.MEASURES)) select.append(new Option(label, name));
    select.addEventListener("change", () => {
      if (select.value === "") return setMeasures(null, null);
      const other = role === "aleatory" ? "epistemic" : "aleatory";
      const chosen = Risk.parse(select.value);
      return setMeasures(...pair(role, chosen, state[other] || Risk.parse("expectation")));
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
      if (document.activeElement !== slider.input || Number(slider.input.value) !== measure.numbers[i]) slider.input.value = measure.numbers[i];
      slider.output.textContent = short(measure.numbers[i]);
    });
  }

  function buildSlider(role, place, parameter, i) {
    const label = document.createElement("label");
    const input = document.createElement("input");
    Object.assign(input, { type: "range", min: parameter.low, max: parameter.high, step: (parameter.high - parameter.low) / 99 });
    input.setAttribute("aria-label", `${parameter.name}: ${place.querySelector("legend").textContent}`);
    const output = document.createElement("output");
    input.addEventListener("input", () => {
      const numbers = [...state[role].numbers];
      numbers[i] = Number(Number(input.value).toPrecision(4));
      const other = role === "aleatory" ? "epistemic" : "aleatory";
      setMeasures(...pair(role, Risk.make(state[role].name, numbers), state[other]));
    });
    label.append(parameter.name, input, output);
    place.append(label);
    return { label, input, output };
  }

  const controls = hasLaws ? { aleatory: buildMeasure("aleatory"), epistemic: buildMeasure("epistemic") } : {};

  function setMeasures(aleatory, epistemic) {
    Object.assign(state, { aleatory, epistemic });
    showMeasure("aleatory");
    showMeasure("epistemic");
    get("own").disabled = known ? isOwn() : !aleatory;
    recompute();
    showDecision();
    showMap();
    showWorld();
    remember();
  }

  // ---- the map of decisions -----------------------------------------------------------------------------------

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
    const beliefs = Array.from({ length: actions }, (_, a) => belief(current(), a));
    const cells = new Uint8Array(GRID * GRID);
    const rowsOf = range(0, GRID).map((i) => varied(state.epistemic, i / (GRID - 1)));
    for (let column = 0; column < GRID; column++) {
      const aleatory = varied(state.aleatory, column / (GRID - 1));
      const risks = beliefs.map(({ laws }) => laws.map((probs) => aleatory.value(atoms, probs)));
      for (let row = 0; row < GRID; row++) {
        let [best, most] = [0, -Infinity];
        for (let a = 0; a < actions; a++) {
          const value = Risk.across(rowsOf[row], risks[a], beliefs[a].weights, about.aggregate);
          if (value > most) [best, most] = [a, value];
        }
        cells[row * GRID + column] = best;
      }
    }
    const point = { x: Math.min(Math.max(shareOf(state.aleatory), 0), 1), y: Math.min(Math.max(shareOf(state.epistemic), 0), 1) };
    const places = Charts.map(get("map"), get("map-over"), cells, GRID, point, mapAxes(), about.actions, recording.colours);
    const won = [...places].sort((a, b) => b[1].count - a[1].count);
    const text = won.map(([a, { count }]) => `${about.actions[a]} on ${Math.round((100 * count) / cells.length)} %`).join(", ");
    get("map-text").textContent = `Drag the point. ${text}.`;
    get("map").setAttribute("aria-label", `Which action wins at which risk levels: ${text}. The sliders above move the point.`);
    document.body.dataset.map = won.map(([a]) => a).join(",");
  }

  function mapAxes() {
    const name = (measure, role) => {
      const parameter = axis(measure);
      return parameter ? { name: `${role}: ${measure.kind.label} ${parameter.name}`, low: short(parameter.low), high: short(parameter.high) } : { name: `${role}: ${measure.kind.label}`, low: "", high: "" };
    };
    return { x: name(state.aleatory, words.chance), y: name(state.epistemic, words.ignorance) };
  }

  function dragMap(event) {
    if (!state.aleatory) return;
    const box = get("map").getBoundingClientRect();
    const inside = (x) => Math.min(Math.max(x, 0), 1);
    const rounded = (measure) => Risk.make(measure.name, measure.numbers.map((number) => Number(number.toPrecision(3))));
    const aleatory = varied(state.aleatory, inside((event.clientX - box.left) / box.width));
    const epistemic = varied(state.epistemic, inside(1 - (event.clientY - box.top) / box.height));
    setMeasures(rounded(aleatory), rounded(epistemic));
  }

  // ---- time ---------------------------------------------------------------------------------------------------

  const misses = new Map();
  const near = (decision, t) => {
    if (!misses.has(decision)) misses.set(decision, world.nearMiss(state.episode, t));
    return misses.get(decision);
  };

  function marks() {
    const first = starts[state.episode];
    const found = [];
    for (const t of range(0, lengths[state.episode])) {
      const told = table.get(first + t);
      if (arrays.terminated.data[first + t]) {
        const road = about.view === "road";
        found.push({ t, kind: road ? "crash" : "end", words: road ? "crash" : "the episode ended by itself" });
      } else if (near(first + t, t)) found.push({ t, kind: "near", words: "near miss: another vehicle within 2 m" });
      if (told && told.best !== told.neutral) found.push({ t, kind: "flip", words: `${about.actions[told.best]}, not ${about.actions[told.neutral]}` });
    }
    return found;
  }

  let placed = null;
  let jumps = [];

  function showTimeline() {
    const [first, length] = [starts[state.episode], lengths[state.episode]];
    const told = range(first, length).map((d) => table.get(d));
    const of = (name) => told.map((one, t) => (one && hasLaws ? one.each[taken(first + t)][name] : 0));
    const [chance, ignorance] = [of("chance"), of("ignorance")];
    const lanes = [[chance, "--chance"], [ignorance, "--ignorance"]].map(([numbers, name]) => ({ numbers, most: Math.max(...numbers), fill: `var(${name})` }));
    jumps = marks();
    const line = {
      length, lanes: hasLaws ? lanes : [], marks: jumps, now: state.t, phase: state.phase, colours: recording.colours,
      preferred: told.map((one, t) => (one ? one.best : taken(first + t))),
      taken: range(first, length).map(taken),
      label: hasLaws
        ? `Per decision, what chance costs the action taken, at most ${short(lanes[0].most)}, what ignorance costs it, at most ${short(lanes[1].most)}, and which action is preferred.`
        : "Per decision, which action is preferred.",
    };
    placed = Charts.timeline(get("timeline"), line);
    if (hasLaws) lanes.forEach(({ most }, i) => { get("marks").children[i].lastChild.textContent = ` costs up to ${short(most)}`; });
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
      button.addEventListener("click", () => jump(moment.first));
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

  function jump(t, { keep = false } = {}) {
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
    if (place >= length) {
      Object.assign(state, { t: length - 1, phase: 1 });
      showMoment();
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
      movePlayhead();
    }
    requestAnimationFrame(tick);
  }

  // ---- what followed ------------------------------------------------------------------------------------------

  // The probability, under the law predicted for the action taken, of less than what really followed.
  const ranks = hasLaws ? Array.from({ length: arrays.action.shape[0] }, (_, d) => rank(d)) : [];

  function rank(decision) {
    const realised = arrays.realised.data[decision];
    if (Number.isNaN(realised)) return null;
    const mixed = mixture(belief(decision, taken(decision)));
    let sum = 0;
    for (let j = 0; j < atoms.length; j++) {
      if (atoms[j] > realised) {
        const width = j ? atoms[j] - atoms[j - 1] : 1;
        const share = j ? (realised - atoms[j - 1]) / width : 0;
        return Math.min(1, sum - (j ? mixed[j - 1] / 2 : 0) + (share * (mixed[j] + (j ? mixed[j - 1] : 0))) / 2);
      }
      sum += mixed[j];
    }
    return 1;
  }

  function showOutcome() {
    if (!hasLaws) return;
    const decision = current();
    const did = taken(decision);
    const mixed = mixture(belief(decision, did));
    const realised = arrays.realised.data[decision];
    const unknown = Number.isNaN(realised);
    const share = Math.round(100 * ranks[decision]);
    const chance = share < 1 ? "less than 1 %" : share > 99 ? "more than 99 %" : `${share} %`;
    const told = unknown
      ? "What followed is not known: the episode was cut off too soon."
      : `From here on it earned ${fixed(realised)} (discounted by ${about.gamma} per decision). The predicted chance of less than that was ${chance}.`;
    const one = { atoms, mixture: mixed, realised: unknown ? null : realised, words: unknown ? "" : `really ${fixed(realised)}`, colour: recording.colours[did] };
    Charts.outcome(get("outcome-law"), { ...one, label: `The law predicted for ${about.actions[did]}. ${told}` }, reach);
    get("outcome-text").textContent = told;
    const sofar = ranks.slice(0, decision + 1).filter((u) => u !== null);
    const shares = range(0, 10).map((bin) => (sofar.length ? sofar.filter((u) => Math.min(Math.floor(u * 10), 9) === bin).length / sofar.length : 0));
    const inside = sofar.filter((u) => u >= 0.1 && u <= 0.9).length;
    const held = inside / (sofar.length || 1);
    const verdict = held > 0.9 ? "Its laws are wider than they need be." : held < 0.7 ? "Its laws are narrower than they should be." : "That is about right.";
    const text = sofar.length
      ? `In ${sofar.length} decisions so far, ${Math.round(100 * held)} % of the returns fell into the middle 80 % of what was predicted. ${verdict} Even bars would be a calibrated agent.`
      : "No return is known yet.";
    Charts.calibration(get("calibration"), shares, text);
    get("calibration-text").textContent = text;
  }

  // ---- everything ---------------------------------------------------------------------------------------------

  function showWorld() {
    const over = state.t === lengths[state.episode] - 1 && state.phase >= 1;
    const chosen = isOwn() || !state.aleatory ? taken(current()) : reasons(current()).best;
    const moment = { episode: state.episode, t: state.t, phase: state.phase, chosen, marked: state.compared, over };
    world.draw(get("world"), moment);
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
    showDecision();
    showOutcome();
    movePlayhead();
    markMoments();
    // While it plays fast, the map is drawn a few times a second.
    if (hasLaws && (!state.playing || performance.now() - mapped > 120)) {
      showMap();
      mapped = performance.now();
    }
  }

  function compare(action) {
    state.compared = state.compared === action ? null : action;
    showDecision();
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
    const hash = `#${Object.entries(entries).map(([key, value]) => `${key}=${value}`).join("&")}`;
    if (location.hash !== hash) history.replaceState(null, "", hash);
  }

  function recall() {
    const given = new Map(location.hash.slice(1).split("&").map((entry) => entry.split("=", 2)));
    const whole = (key, high) => {
      const number = Number(given.get(key));
      return Number.isInteger(number) && number >= 1 && number <= high ? number - 1 : 0;
    };
    state.episode = whole("episode", lengths.length);
    state.t = whole("decision", lengths[state.episode]);
    state.phase = 0;
    if (!hasLaws) return;
    const [aleatory, epistemic] = ["aleatory", "epistemic"].map((role) => Risk.parse(decodeURIComponentSafely(given.get(role) || "")));
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
    for (const [a, row] of rows.entries()) row.row.style.setProperty("--on", World.onto(recording.colours[a]));
    get("theme").textContent = name === "dark" ? "Light" : "Dark";
    get("theme").setAttribute("aria-label", `Switch to ${name === "dark" ? "light" : "dark"} colours`);
  }

  function nextMark(direction) {
    const others = jumps.map((mark) => mark.t).filter((t) => (direction > 0 ? t > state.t : t < state.t));
    if (others.length) jump(direction > 0 ? Math.min(...others) : Math.max(...others));
  }

  const KEYS = {
    " ": () => (state.playing ? pause() : play()),
    ArrowLeft: () => jump(state.t - 1),
    ArrowRight: () => jump(state.t + 1),
    ArrowUp: () => nextMark(-1),
    ArrowDown: () => nextMark(1),
    p: () => chooseEpisode(state.episode - 1),
    n: () => chooseEpisode(state.episode + 1),
    Escape: () => state.compared !== null && compare(state.compared),
  };

  function onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const tag = event.target.tagName;
    const digit = /^[1-9]$/.test(event.key) ? Number(event.key) - 1 : -1;
    if (tag === "SELECT" || (tag === "INPUT" && event.key !== " ") || (tag === "BUTTON" && event.key === " ")) return;
    if (digit >= 0 && digit < actions) compare(digit);
    else if (Object.hasOwn(KEYS, event.key)) KEYS[event.key]();
    else return;
    event.preventDefault();
  }

  function fromTimeline(event) {
    const x = event.clientX - get("timeline").getBoundingClientRect().left;
    jump(Math.floor((x - placed.left) / placed.step));
  }

  function draggable(target, move) {
    target.addEventListener("pointerdown", (event) => {
      target.setPointerCapture(event.pointerId);
      move(event);
    });
    target.addEventListener("pointermove", (event) => { if (target.hasPointerCapture(event.pointerId)) move(event); });
  }

  function begin() {
    get("subject").textContent = `${about.agent} in ${about.env}, maximising ${about.objective} \u00b7 ${lengths.length === 1 ? "1 episode" : `${lengths.length} episodes`}, seed ${about.seed}`;
    get("legend").textContent = world.legend;
    get("made").textContent = `${recording.made} The page is whole in itself: it loads nothing and sends nothing.`;
    showKeys();
    showSigns();
    lengths.forEach((length, e) => {
      const last = starts[e] + length - 1;
      const end = arrays.terminated.data[last] ? (about.view === "road" ? ", crash" : ", ended") : "";
      get("episode").append(new Option(`${e + 1} (${length} decisions${end})`, String(e)));
    });
    const usual = about.per_second <= 5 ? 1 : 4 / about.per_second;
    state.speed = SPEEDS.reduce((best, speed) => (Math.abs(Math.log(speed / usual)) < Math.abs(Math.log(best / usual)) ? speed : best));
    for (const speed of SPEEDS) get("speed").append(new Option(speed >= 1 ? `${speed}\u00d7` : `1/${1 / speed}\u00d7`, String(speed), false, speed === state.speed));
    document.body.classList.toggle("without-laws", !hasLaws);
    for (const id of ["what-if", "outcome"]) get(id).classList.toggle("hidden", !hasLaws);
    const heads = hasLaws
      ? ["", `the return, by ${members} networks; shaded: what counts more`, `${words.mean} \u2212 ${words.chance} \u2212 ${words.ignorance}`, words.value]
      : ["", "estimates", words.value];
    get("key").append(...heads.map((text) => element("span", "", text)));
    get("play").addEventListener("click", KEYS[" "]);
    get("previous").addEventListener("click", KEYS.ArrowLeft);
    get("next").addEventListener("click", KEYS.ArrowRight);
    get("scrub").addEventListener("input", () => jump(Number(get("scrub").value)));
    get("speed").addEventListener("change", () => { state.speed = Number(get("speed").value); });
    get("episode").addEventListener("change", () => chooseEpisode(Number(get("episode").value)));
    get("own").addEventListener("click", () => setMeasures(known ? own.aleatory : null, known ? own.epistemic : null));
    get("theme").addEventListener("click", () => {
      setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
      refresh();
    });
    draggable(get("timeline"), fromTimeline);
    draggable(get("map").parentElement, dragMap);
    document.addEventListener("keydown", onKey);
    window.addEventListener("resize", () => { showTimeline(); showMoment(); });
    window.addEventListener("hashchange", () => { pause(); recall(); refresh(); });
    const dark = window.matchMedia("(prefers-color-scheme: dark)");
    setTheme(dark.matches ? "dark" : "light");
    dark.addEventListener("change", () => { setTheme(dark.matches ? "dark" : "light"); refresh(); });
    recall();
    refresh();
    document.body.dataset.ready = "true";
  }

  function showSigns() {
    const signs = hasLaws ? [["chance", words.chance], ["ignorance", words.ignorance], ["flip", MARKS.flip]] : [];
    if (about.view === "road") signs.push(["near", MARKS.near], ["crash", MARKS.crash]);
    for (const [kind, text] of signs) {
      const made = element("span", "", text);
      made.prepend(Charts.sign(kind));
      made.append("");
      get("marks").append(made);
    }
    get("marks").append(element("span", "", "coloured strip: the action preferred"));
  }

  function showKeys() {
    const keys = [["space", "play or pause"], ["\u2190 \u2192", "one decision back or on"], ["\u2191 \u2193", "previous or next mark"], [`1\u2013${Math.min(actions, 9)}`, "ask why not this action"], ["n p", "next or previous episode"]];
    for (const [key, text] of keys) {
      const made = document.createElement("kbd");
      made.textContent = key;
      get("keys").append(made, ` ${text} \u00a0 `);
    }
  }

  begin();
})();
