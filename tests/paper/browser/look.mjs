// Opens the report in a headless browser and uses it as a person would; prints what it saw as JSON.
// node look.mjs PAGE [PICTURES]: with a second argument it writes pictures of the first screen, PICTURES-WIDTH-SCHEME.png.
import chromium from "@sparticuz/chromium";
import puppeteer from "puppeteer-core";

const [file, pictures] = process.argv.slice(2);
const WIDTHS = [1280, 390];
const executablePath = await chromium.executablePath();
const browser = await puppeteer.launch({ args: chromium.args, executablePath, headless: "shell" });
const problems = [];

async function opened({ width = WIDTHS[0], scheme = "light", hash = "" } = {}) {
  const page = await browser.newPage();
  page.on("console", (message) => {
    if (["assert", "error", "warn"].includes(message.type())) problems.push(message.text());
  });
  page.on("pageerror", (error) => problems.push(String(error)));
  page.on("requestfailed", (request) => problems.push(request.url()));
  page.on("request", (request) => {
    if (!/^(file|data):/.test(request.url())) problems.push(request.url());
  });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
  await page.setViewport({ width, height: 900 });
  await page.goto(`file://${file}${hash}`, { waitUntil: "load" });
  const ready = () => document.body.dataset.ready === "true";
  const drawn = await page.waitForFunction(ready, { timeout: 5000 }).then(
    () => true,
    () => false,
  );
  return { page, drawn };
}

const moment = () => new Promise((resolve) => setTimeout(resolve, 100));
const overhang = (page) => page.evaluate(() => document.documentElement.scrollWidth - innerWidth);

// The claims that can be seen, by name, in their order.
const claims = (page) =>
  page.evaluate(() =>
    [...document.querySelectorAll("#claims tbody")].filter((one) => one.checkVisibility()).map((one) => one.id.slice(6)),
  );

async function sorted(page) {
  const place = "#claims th:nth-child(2)";
  const seen = async () => ({
    order: await claims(page),
    way: await page.$eval(place, (head) => head.getAttribute("aria-sort")),
    arrow: await page.$eval(`${place} button`, (button) => getComputedStyle(button, "::after").content),
  });
  const found = { column: await page.$eval(place, (head) => head.textContent), first: await seen() };
  for (const name of ["up", "down", "back"]) {
    await page.focus(`${place} button`);
    await page.keyboard.press("Enter");
    found[name] = await seen();
  }
  return found;
}

async function filtered(page) {
  const seen = async () => ({ shown: await claims(page), words: await page.$eval("#claims .shown", (one) => one.textContent) });
  const found = { verdicts: {}, counts: {}, presets: {}, sections: {} };
  const options = (name) => page.$$eval(`#claims select[name=${name}] option`, (all) => all.map((one) => one.value));
  for (const verdict of await page.$$eval("#claims [data-verdict]", (all) => all.map((one) => one.dataset.verdict))) {
    const button = `#claims [data-verdict="${verdict}"]`;
    await page.click(button);
    found.verdicts[verdict] = await seen();
    found.counts[verdict] = await page.$eval(`${button} .count`, (one) => Number(one.textContent));
  }
  await page.click('#claims [data-verdict=""]');
  for (const name of ["preset", "section"]) {
    for (const value of await options(name)) {
      await page.select(`#claims select[name=${name}]`, value);
      found[`${name}s`][value] = await seen();
    }
    await page.select(`#claims select[name=${name}]`, "");
  }
  await page.select("#claims select[name=preset]", (await options("preset")).at(-1));
  await page.click('#claims [data-verdict="does not hold"]');
  found.both = await seen();
  await page.select("#claims select[name=preset]", "");
  await page.click('#claims [data-verdict=""]');
  found.after = await seen();
  return found;
}

// The middle of an element of the first figure, brought onto the screen.
async function middle(page, handle) {
  await handle.evaluate((one) => one.scrollIntoView({ block: "center" }));
  const box = await handle.boundingBox();
  return [box.x + box.width / 2, box.y + box.height / 2];
}

async function frontier(page) {
  const tip = () => page.$eval("#frontier .tip", (one) => (one.hidden ? null : one.innerText));
  const labels = () => page.$$eval("#frontier .point", (all) => all.map((one) => one.getAttribute("aria-label")));
  const found = { labels: await labels(), tips: [], ceiling: await page.$eval(".ceiling-name", (one) => one.textContent) };
  for (const point of await page.$$("#frontier .point")) {
    await page.mouse.move(...(await middle(page, await point.$(".ring"))));
    found.tips.push(await tip());
  }
  await page.mouse.move(2, 2);
  found.away = await tip();
  await page.$eval("#frontier .point[tabindex='0']", (one) => one.focus());
  found.focused = await tip();
  await page.keyboard.press("ArrowRight");
  found.next = await tip();
  found.stops = await page.$$eval("#frontier .point[tabindex='0']", (all) => all.length);
  const button = await page.$("#frontier .legend button");
  await button.click();
  found.without = (await labels()).length;
  found.pressed = await button.evaluate((one) => one.getAttribute("aria-pressed"));
  await button.click();
  found.again = (await labels()).length;
  return found;
}

// The first chart of every result: its numbers at the end, under the pointer in the middle, and at the start.
async function curves(page) {
  const found = {};
  for (const place of await page.$$("main > section > [data-charts]")) {
    const chart = await place.$(".curves");
    const read = () =>
      chart.evaluate((one) => ({
        at: one.querySelector(".at").textContent,
        numbers: Object.fromEntries([...one.querySelectorAll("li")].map((line) => [line.children[1].textContent, line.children[2].textContent])),
        told: one.querySelector("svg").getAttribute("aria-valuetext"),
      }));
    const drawing = await chart.$("svg");
    const centre = await middle(page, drawing);
    await moment();
    const seen = { end: await read(), paths: await drawing.$$eval("path", (all) => all.length) };
    await page.mouse.move(...centre);
    seen.middle = await read();
    await page.mouse.move(2, 2);
    await drawing.evaluate((one) => one.focus());
    await page.keyboard.press("Home");
    seen.start = await read();
    await page.keyboard.press("ArrowRight");
    seen.second = await read();
    found[await place.evaluate((one) => one.dataset.charts)] = seen;
  }
  return found;
}

// The first claim that has a figure, opened by a click.
async function openedClaim(page) {
  const claim = await page.$("#claims tbody:has(figure)");
  if (!claim) return null;
  const summary = await claim.$("summary");
  await summary.evaluate((one) => one.scrollIntoView({ block: "center" }));
  await summary.click();
  await page.waitForFunction((one) => one.querySelector("img")?.naturalWidth > 0, { timeout: 10000 }, claim);
  return claim.evaluate((one) => ({
    name: one.id.slice(6),
    open: one.querySelector("details").open,
    words: one.querySelector("details").innerText,
    commands: [...one.querySelectorAll(".command")].map((command) => command.textContent),
  }));
}

// All details opened: every figure as an image, every chart drawn.
async function everything(page) {
  await page.evaluate(() => {
    for (const one of document.querySelectorAll("details")) one.open = true;
    dispatchEvent(new Event("beforeprint"));
  });
  await page.waitForFunction(
    () =>
      [...document.querySelectorAll("figure[data-figure]")].every((one) => one.querySelector("img")?.complete) &&
      [...document.querySelectorAll("[data-charts] svg")].every((one) => one.querySelector("path")),
    { timeout: 60000 },
  );
  return page.evaluate(() => ({
    widths: [...document.querySelectorAll("figure img")].map((one) => one.naturalWidth && one.getBoundingClientRect().width),
    figures: [...new Set([...document.querySelectorAll("figure[data-figure]")].map((one) => one.dataset.figure))],
    empty: [...document.querySelectorAll("[data-charts] svg, #frontier .plot svg")].filter((one) => !one.querySelector("path")).length,
  }));
}

const contents = (page) =>
  page.evaluate(() => {
    const targets = (all) => [...all].map((link) => document.getElementById(link.hash.slice(1)));
    return {
      contents: targets(document.querySelectorAll(".contents a")).map((one) => one && one.id),
      claims: [...new Set(targets(document.querySelectorAll("#claims a")).map((one) => one && one.id))],
    };
  });

const nameless = (page) =>
  page.evaluate(() =>
    [...document.querySelectorAll("button, select, input, svg[role], summary")]
      .filter((one) => one.checkVisibility())
      .filter((one) => !(one.getAttribute("aria-label") || one.textContent.trim() || one.labels?.length))
      .map((one) => one.outerHTML.slice(0, 100)),
  );

async function tour(page) {
  const found = { sorted: await sorted(page), filtered: await filtered(page), nameless: await nameless(page) };
  if (await page.$("#frontier")) found.frontier = await frontier(page);
  found.curves = await curves(page);
  found.claim = await openedClaim(page);
  found.links = await contents(page);
  await page.evaluate(() => document.querySelector("#claims td.verdict a").click());
  const arrives = () => {
    const top = location.hash ? document.getElementById(location.hash.slice(1)).getBoundingClientRect().top : -1;
    return top > -1 && top < innerHeight;
  };
  found.reached = await page.waitForFunction(arrives, { timeout: 5000 }).then(
    () => true,
    () => false,
  );
  Object.assign(found, await everything(page));
  return found;
}

async function looks() {
  const found = {};
  for (const width of WIDTHS)
    for (const scheme of ["light", "dark"]) {
      const { page } = await opened({ width, scheme });
      await moment();
      if (pictures) await page.screenshot({ path: `${pictures}-${width}-${scheme}.png` });
      const seen = await page.evaluate(() => ({
        background: getComputedStyle(document.body).backgroundColor,
        contents: document.querySelector(".contents details").open,
        points: document.querySelectorAll("#frontier .point").length,
      }));
      const closed = await overhang(page);
      await page.evaluate(() => document.querySelectorAll("details").forEach((one) => (one.open = true)));
      await moment();
      found[`${width} ${scheme}`] = { ...seen, overhang: [closed, await overhang(page)] };
      await page.close();
    }
  return found;
}

try {
  const { page, drawn } = await opened();
  const seen = drawn ? { ...(await tour(page)), looks: await looks() } : {};
  const ran = await page.evaluate(() => window.ran ?? null);
  console.log(JSON.stringify({ ran, drawn, problems, ...seen }));
} finally {
  await browser.close();
}
