// Opens a page in a headless browser and uses it as a person would; prints what it saw as JSON.
// node tour.mjs PAGE PLAN.json: the plan says which measures to set, and where pictures go, if any.
import { readFileSync } from "node:fs";
import chromium from "@sparticuz/chromium";
import puppeteer from "puppeteer-core";

const [file, planFile] = process.argv.slice(2);
const plan = JSON.parse(readFileSync(planFile, "utf8"));
const executablePath = await chromium.executablePath();
const browser = await puppeteer.launch({ args: chromium.args, executablePath, headless: "shell" });
const problems = [];

async function opened(address, { width = 1280, scheme = "light" } = {}) {
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
    await page.goto(address, { waitUntil: "load" });
    await settled(page);
    return page;
}

const settled = (page) =>
    page.waitForFunction(() => document.body.dataset.ready === "true" && document.body.dataset.settled === "true", {
        timeout: 20000,
    });

// The address follows a moment later.
const seen = async (page) => {
    await new Promise((resolve) => setTimeout(resolve, 150));
    return page.evaluate(() => {
        const text = (id) => document.getElementById(id).textContent;
        const { decision, episode, best } = document.body.dataset;
        return {
            decision: Number(decision),
            episode: Number(episode),
            best: Number(best),
            hash: location.hash,
            sentence: text("sentence"),
            aside: text("aside"),
            whynot: text("whynot"),
            hud: text("hud"),
            playing: document.body.classList.contains("playing"),
            otherwise: document.querySelectorAll("#timeline .otherwise").length,
            hacked: window.hacked === undefined ? null : window.hacked,
        };
    });
};

// The actions of the map, read back from its colours.
const mapCells = (page) =>
    page.evaluate(() => {
        const canvas = document.getElementById("map");
        const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        const style = getComputedStyle(document.documentElement);
        const colours = [0, 1, 2, 3, 4].map((a) => {
            const text = style.getPropertyValue(`--a${a}`).trim();
            return [1, 3, 5].map((i) => parseInt(text.slice(i, i + 2), 16)).join();
        });
        const rows = [];
        for (let y = canvas.height - 1; y >= 0; y--) {
            rows.push(
                Array.from({ length: canvas.width }, (_, x) =>
                    colours.indexOf([0, 1, 2].map((c) => data[(y * canvas.width + x) * 4 + c]).join()),
                ),
            );
        }
        return rows;
    });

const nameless = (page) =>
    page.evaluate(() =>
        [...document.querySelectorAll("button, select, input, canvas, svg[role=img]")]
            .filter((one) => one.checkVisibility())
            .filter(
                (one) =>
                    !(one.getAttribute("aria-label") || one.textContent.trim() || (one.labels && one.labels.length)),
            )
            .map((one) => one.outerHTML.slice(0, 100)),
    );

async function tour() {
    const found = {};
    const address = `file://${file}`;
    const page = await opened(address);
    found.first = await seen(page);
    found.nameless = await nameless(page);
    const press = async (key) => {
        await page.keyboard.press(key);
        return seen(page);
    };
    found.keys = [];
    for (const key of plan.keys || []) found.keys.push(await press(key));
    if (plan.play) {
        await page.select("#speed", "8");
        await page.keyboard.press("Space");
        found.started = await seen(page);
        await page.waitForFunction(
            (e) => document.body.dataset.over === e,
            { timeout: 60000 },
            String(found.started.episode),
        );
        found.ended = await seen(page);
    }
    found.moments = [];
    for (const hash of plan.hashes || []) {
        await page.evaluate((text) => {
            location.hash = text;
        }, hash);
        await settled(page);
        found.moments.push(await seen(page));
    }
    if (plan.map) {
        found.map = await mapCells(page);
        await page.evaluate(() => document.getElementById("map").scrollIntoView({ block: "center" }));
        const box = await (await page.$("#map")).boundingBox();
        await page.mouse.move(box.x + box.width * 0.5, box.y + box.height * 0.5);
        await page.mouse.down();
        await page.mouse.move(box.x + box.width * plan.map[0], box.y + box.height * (1 - plan.map[1]), { steps: 3 });
        await page.mouse.up();
        await settled(page);
        found.dragged = await seen(page);
        await page.focus("#aleatory input");
        await page.keyboard.press("ArrowRight");
        found.slid = await seen(page);
        await page.select("#epistemic select", "worst_case");
        await settled(page);
        found.chosen = await seen(page);
        await page.click("#own");
        found.own = await seen(page);
        await page.evaluate(() => scrollTo(0, 0));
        const line = await (await page.$("#timeline")).boundingBox();
        await page.mouse.click(line.x + line.width * 0.6, line.y + 40);
        found.clicked = await seen(page);
        await page.click("#actions li:nth-child(2) .name");
        found.compared = await seen(page);
    }
    const shared = await opened(await page.evaluate(() => location.href));
    found.shared = await seen(shared);
    found.looks = [];
    for (const width of [1280, 390]) {
        for (const scheme of ["light", "dark"]) {
            const look = await opened(`${address}${plan.hashes ? plan.hashes[0] : ""}`, { width, scheme });
            if (plan.pictures)
                await look.screenshot({ path: `${plan.pictures}-${width}-${scheme}.png`, fullPage: true });
            found.looks.push(
                await look.evaluate(() => ({
                    overhang: document.documentElement.scrollWidth - innerWidth,
                    background: getComputedStyle(document.body).backgroundColor,
                    painted: new Set(document.getElementById("world").getContext("2d").getImageData(0, 0, 300, 90).data)
                        .size,
                })),
            );
            await look.close();
        }
    }
    found.theme = await page.evaluate(() => {
        document.getElementById("theme").click();
        return [document.documentElement.dataset.theme, getComputedStyle(document.body).backgroundColor];
    });
    return found;
}

// Only opens pages, tries every control of each, and tells whether anything of a recording ran.
async function attacked() {
    const found = [];
    for (const name of plan.pages) {
        const page = await opened(`file://${name}${plan.hash || ""}`);
        for (const key of ["ArrowRight", "2", "ArrowDown", "n", "Space", "Space"]) await page.keyboard.press(key);
        await page.evaluate(() => {
            for (const select of document.querySelectorAll("select")) {
                select.selectedIndex = select.options.length - 1;
                select.dispatchEvent(new Event("change"));
            }
        });
        await page.evaluate(() => {
            for (const button of document.querySelectorAll("button")) button.click();
        });
        await settled(page);
        const told = await seen(page);
        const names = await page.evaluate(() =>
            [...document.querySelectorAll(".action .name")].map((one) => one.childNodes[1].textContent),
        );
        const scripts = await page.evaluate(() => document.querySelectorAll("script").length);
        const strangers = await page.evaluate(
            () => document.querySelectorAll("iframe, img, object, embed, [onerror], [onload]").length,
        );
        found.push({ ...told, names, scripts, strangers });
        await page.close();
    }
    return found;
}

try {
    const found = plan.pages ? { pages: await attacked() } : await tour();
    console.log(JSON.stringify({ ...found, problems }));
} finally {
    await browser.close();
}
