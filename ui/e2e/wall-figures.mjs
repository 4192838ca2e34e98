// What a wall costs a browser, for bench/ui.py, which tells by lines what to do and reads the answers, a JSON line each.
//
//   {"url", "token", "chromium", "cameras"}   what is asked of it; the browser starts
//   open           a new browser opens the wall: when it was useful, what CPU that took, and how far things jumped
//   rest SECONDS   CPU of the tab over that time
//   memory         what the tab holds after its garbage was collected

import { createInterface } from "node:readline";
import { chromium } from "@playwright/test";

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const hear = async () => (await lines.next()).value;
const say = (answer) => console.log(JSON.stringify(answer));

const WIDTH = 1600;
const HEIGHT = 900;
/** Useful is a wall with the first rows of cameras, each with its picture. */
const TILES_SEEN = 6;
const SETTLE_MS = 5000;

/** In the page, before anything of it: notes jumps of what is shown, and when enough of it is there. */
function watch(tilesSeen) {
  globalThis.figures = { shift: 0, usefulMs: null };
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) if (!entry.hadRecentInput) globalThis.figures.shift += entry.value;
  }).observe({ type: "layout-shift", buffered: true });
  const note = () => {
    globalThis.figures.usefulMs = performance.now();
  };
  const look = () => {
    const pictures = [...document.querySelectorAll("main li article img")];
    const seen = pictures.filter((one) => one.complete && one.naturalWidth > 0);
    // A frame later it is on the screen.
    requestAnimationFrame(seen.length >= tilesSeen ? note : look);
  };
  requestAnimationFrame(look);
}

const asked = JSON.parse(await hear());
const browser = await chromium.launch({
  executablePath: asked.chromium,
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"],
});
const system = await browser.newBrowserCDPSession();
let page = null;
let tab = null;

async function open() {
  await page?.context().close();
  const context = await browser.newContext({ viewport: { width: WIDTH, height: HEIGHT }, locale: "en-US" });
  await context.addCookies([{ name: "camserver_session", value: asked.token, url: asked.url }]);
  page = await context.newPage();
  tab = await context.newCDPSession(page);
  await tab.send("Performance.enable");
  await page.addInitScript(watch, TILES_SEEN);
  const before = await browserSeconds();
  await page.goto(asked.url);
  await until(() => globalThis.figures.usefulMs !== null);
  const cpuMs = ((await browserSeconds()) - before) * 1000;
  const isWhole = (cameras) => document.querySelectorAll("main li article a[data-tile]").length === cameras;
  await until(isWhole, asked.cameras);
  return { ...(await figures()), cpuMs };
}

/** Whoever waits in vain is told what the page said instead. */
async function until(isSo, argument = null) {
  try {
    await page.waitForFunction(isSo, argument, { timeout: 120_000 });
  } catch (error) {
    throw new Error(`${error.message} The page says: ${await page.locator("body").innerText()}`);
  }
}

/** What was noted, and what is there. */
async function figures() {
  const noted = await page.evaluate(() => ({
    ...globalThis.figures,
    tiles: document.querySelectorAll("main li article a[data-tile]").length,
    pictures: document.querySelectorAll("main li article img").length,
  }));
  return noted;
}

async function browserSeconds(isMeant = () => true) {
  const { processInfo } = await system.send("SystemInfo.getProcessInfo");
  return processInfo.filter(({ type }) => isMeant(type)).reduce((sum, { cpuTime }) => sum + cpuTime, 0);
}

const rendererSeconds = () => browserSeconds((type) => type === "renderer");

async function mainThreadSeconds() {
  const { metrics } = await tab.send("Performance.getMetrics");
  return metrics.find(({ name }) => name === "TaskDuration").value;
}

async function rest(seconds) {
  // What opening the page has left to do is no rest.
  await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
  const before = [await rendererSeconds(), await mainThreadSeconds()];
  const started = performance.now();
  await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
  const after = [await rendererSeconds(), await mainThreadSeconds()];
  const took = (performance.now() - started) / 1000;
  return { renderer: (after[0] - before[0]) / took, mainThread: (after[1] - before[1]) / took, ...(await figures()) };
}

async function memory() {
  await tab.send("HeapProfiler.enable");
  for (let times = 0; times < 3; times += 1) await tab.send("HeapProfiler.collectGarbage");
  const { metrics } = await tab.send("Performance.getMetrics");
  const of = (wanted) => metrics.find(({ name }) => name === wanted).value;
  return {
    heapBytes: of("JSHeapUsedSize"),
    nodes: of("Nodes"),
    listeners: of("JSEventListeners"),
    ...(await figures()),
  };
}

say({ started: true });
for (let line = await hear(); line !== undefined; line = await hear()) {
  const [what, number] = line.split(" ");
  say(what === "open" ? await open() : what === "rest" ? await rest(Number(number)) : await memory());
}
await browser.close();
