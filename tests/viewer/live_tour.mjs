// Opens a live view in a headless browser, drives, branches and changes the traffic; prints what it saw as JSON.
// node live_tour.mjs ADDRESS PLAN.json: the plan says where pictures go, if any.
import { readFileSync } from "node:fs";
import chromium from "@sparticuz/chromium";
import puppeteer from "puppeteer-core";

const [address, planFile] = process.argv.slice(2);
const plan = JSON.parse(readFileSync(planFile, "utf8"));
const executablePath = await chromium.executablePath();
const browser = await puppeteer.launch({ args: chromium.args, executablePath, headless: "shell" });
const problems = [];

async function opened({ width = 1280, scheme = "light" } = {}) {
    const page = await browser.newPage();
    page.on("console", (message) => {
        if (["assert", "error", "warn"].includes(message.type())) problems.push(message.text());
    });
    page.on("pageerror", (error) => problems.push(String(error)));
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
    await page.setViewport({ width, height: 900 });
    await page.goto(address, { waitUntil: "load" });
    await page.waitForFunction(() => document.body.dataset.ready === "true", { timeout: 20000 });
    return page;
}

const seen = (page) =>
    page.evaluate(() => ({
        decision: Number(document.body.dataset.decision),
        line: Number(document.body.dataset.episode),
        lines: document.getElementById("episode").options.length,
        label: document.getElementById("episode").selectedOptions[0].textContent,
        sentence: document.getElementById("sentence").textContent,
        aside: document.getElementById("aside").textContent,
        last: Number(document.getElementById("scrub").max),
        told: document.body.dataset.told,
        others: [...document.querySelectorAll(".other p")].map((one) => one.textContent),
        overhang: document.documentElement.scrollWidth - innerWidth,
    }));

const until = (page, test, ...given) => page.waitForFunction(test, { timeout: 60000 }, ...given);

try {
    const found = {};
    const page = await opened();
    found.first = await seen(page);
    await page.keyboard.press("ArrowRight");
    await until(page, () => document.body.dataset.decision === "1");
    found.next = await seen(page);
    await page.select("#speed", "8");
    await page.keyboard.press("Space");
    await until(page, (t) => Number(document.body.dataset.decision) >= t, plan.until);
    await page.keyboard.press("Space");
    found.played = await seen(page);
    await page.keyboard.press("ArrowLeft");
    await page.keyboard.press("ArrowLeft");
    found.rewound = await seen(page);
    await page.click(`[data-branch="${plan.action}"]`);
    await until(page, () => document.body.dataset.episode === "1");
    found.branched = await seen(page);
    await page.select(".live select", "1");
    await page.evaluate(() =>
        [...document.querySelectorAll(".live button")].find((one) => one.textContent === "Wreck").click(),
    );
    await until(page, () => document.body.dataset.episode === "2");
    found.edited = await seen(page);
    if (plan.pictures) {
        await page.screenshot({ path: `${plan.pictures}-1280.png`, fullPage: true });
        const phone = await opened({ width: 390, scheme: "dark" });
        await phone.keyboard.press("ArrowRight");
        await until(phone, () => document.body.dataset.decision === "1");
        await phone.screenshot({ path: `${plan.pictures}-390.png`, fullPage: true });
        found.phone = await seen(phone);
    }
    const canvas = await (await page.$("#world")).boundingBox();
    found.dragged = null;
    for (let step = 20; step < 100 && found.dragged === null; step += 1) {
        const [x, y] = [canvas.x + (canvas.width * step) / 100, canvas.y];
        for (let down = 52; down < canvas.height - 20 && found.dragged === null; down += 22) {
            await page.mouse.move(x, y + down);
            await page.mouse.down();
            const picked = await page.evaluate(() => Number(document.querySelector(".live select").value));
            if (picked) {
                await page.mouse.move(x + 60, y + 52, { steps: 3 });
                await page.mouse.up();
                await until(page, () => document.body.dataset.episode === "3");
                found.dragged = { picked, ...(await seen(page)) };
            } else await page.mouse.up();
        }
    }
    console.log(JSON.stringify({ ...found, problems }));
} catch (error) {
    const pages = await browser.pages();
    const told = await Promise.all(pages.map((one) => one.evaluate(() => JSON.stringify(document.body.dataset))));
    throw new Error(`${problems.join("; ")} ${error} ${told.join("; ")}`);
} finally {
    await browser.close();
}
