// Opens a page in a headless browser, clicks on the column "sound" of its first table and on its first link, and prints
// what it saw as JSON; with a second argument it writes pictures of the first screen, FILE-WIDTH.png.
import chromium from "@sparticuz/chromium";
import puppeteer from "puppeteer-core";

const WIDTHS = [1280, 390];
const executablePath = await chromium.executablePath();
const browser = await puppeteer.launch({ args: chromium.args, executablePath, headless: "shell" });
try {
  const page = await browser.newPage();
  const problems = [];
  page.on("console", (message) => {
    if (["assert", "error", "warn"].includes(message.type())) problems.push(message.text());
  });
  page.on("pageerror", (error) => problems.push(String(error)));
  page.on("requestfailed", (request) => problems.push(request.url()));
  await page.setViewport({ width: WIDTHS[0], height: 900 });
  await page.goto(`file://${process.argv[2]}`, { waitUntil: "load" });
  const place = await page.evaluate(() => {
    const heads = [...document.querySelector("table").tHead.rows[0].cells];
    return heads.findIndex((head) => head.textContent === "sound");
  });
  const column = () =>
    page.evaluate(
      (cell) => [...document.querySelector("table").tBodies[0].rows].map((row) => row.cells[cell].textContent),
      place,
    );
  const before = await column();
  await page.click(`table th:nth-child(${place + 1})`);
  const after = await column();
  const widths = await page.evaluate(() =>
    [...document.querySelectorAll("figure img")].map((image) => image.naturalWidth && image.getBoundingClientRect().width),
  );
  const { links, headings } = await page.evaluate(() => {
    const found = [...document.querySelectorAll("table")[0].querySelectorAll("td a")];
    const targets = found.map((link) => document.querySelector(link.getAttribute("href")));
    return { links: found.length, headings: [...new Set(targets.map((target) => target.textContent))] };
  });
  await page.evaluate(() => document.querySelector("table td a").click());
  // Large images are decoded when they come into view: the browser scrolls once they have their places.
  const arrives = () => {
    const top = location.hash ? document.querySelector(location.hash).getBoundingClientRect().top : -1;
    return top > -1 && top < innerHeight;
  };
  const reached = await page.waitForFunction(arrives, { timeout: 5000 }).then(
    () => true,
    () => false,
  );
  const overhang = {};
  for (const width of WIDTHS) {
    await page.setViewport({ width, height: 900 });
    overhang[width] = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    if (process.argv[3]) {
      await page.evaluate(() => scrollTo(0, 0));
      await page.screenshot({ path: `${process.argv[3]}-${width}.png` });
    }
  }
  const ran = await page.evaluate(() => window.ran ?? null);
  console.log(JSON.stringify({ ran, problems, before, after, widths, links, headings, reached, overhang }));
} finally {
  await browser.close();
}
