// Opens a page in a headless browser, clicks on the third column of its first table and on its first link, and prints
// what it saw as JSON; with a second argument it writes a picture of the first screen there.
import chromium from "@sparticuz/chromium";
import puppeteer from "puppeteer-core";

const executablePath = await chromium.executablePath();
const browser = await puppeteer.launch({ args: chromium.args, executablePath, headless: "shell" });
try {
  const page = await browser.newPage();
  const problems = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) problems.push(message.text());
  });
  page.on("pageerror", (error) => problems.push(String(error)));
  page.on("requestfailed", (request) => problems.push(request.url()));
  await page.setViewport({ width: 1300, height: 900 });
  await page.goto(`file://${process.argv[2]}`, { waitUntil: "load" });
  const column = () =>
    page.evaluate(() => [...document.querySelector("table").tBodies[0].rows].map((row) => row.cells[2].textContent));
  const before = await column();
  await page.click("table th:nth-child(3)");
  const after = await column();
  const widths = await page.evaluate(() =>
    [...document.querySelectorAll("figure svg")].map((svg) => svg.getBoundingClientRect().width),
  );
  const { links, headings } = await page.evaluate(() => {
    const found = [...document.querySelectorAll("table")[0].querySelectorAll("td a")];
    const targets = found.map((link) => document.querySelector(link.getAttribute("href")));
    return { links: found.length, headings: [...new Set(targets.map((target) => target.textContent))] };
  });
  await page.evaluate(() => document.querySelector("table td a").click());
  const reached = await page.evaluate(() => {
    const top = document.querySelector(location.hash).getBoundingClientRect().top;
    return location.hash !== "" && top >= 0 && top < innerHeight;
  });
  const overhang = [];
  for (const width of [1300, 400]) {
    await page.setViewport({ width, height: 900 });
    overhang.push(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth));
  }
  if (process.argv[3]) {
    await page.setViewport({ width: 1300, height: 900 });
    await page.evaluate(() => scrollTo(0, 0));
    await page.screenshot({ path: process.argv[3] });
  }
  console.log(JSON.stringify({ problems, before, after, widths, links, headings, reached, overhang }));
} finally {
  await browser.close();
}
