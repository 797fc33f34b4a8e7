// Opens a page in a headless browser, clicks on the third column of its first table, and prints what it saw as JSON.
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
  console.log(JSON.stringify({ problems, before, after, widths }));
} finally {
  await browser.close();
}
