// The dashboard, left open on a wall: the real page on the living stream of the demo, by the clock. It must not grow.
//   ./soak dashboard [MINUTES]

import { Demo, launch, rows, sleep, until, visit } from "./support.mjs";

const minutes = Number(process.argv[2] ?? 60);
if (!(0 < minutes)) throw new Error(`minutes must be a positive number, got ${process.argv[2]}`);
/** Looked at once a minute, and at least eight times. */
const SAMPLES = Math.max(8, Math.round(minutes));
/** How much more the lowest of the last quarter may be than the lowest of the first: a part, and an amount. */
const MORE = { heap: [0.1, 1e6], nodes: [0.1, 40], listeners: [0, 5] };
/** Frames are counted by their length in milliseconds, the longest in the last place, so that counting them takes no memory. */
const LONGEST = 1000;

function countFrames(longest) {
  globalThis.frames = new Uint32Array(longest + 1);
  let before = performance.now();
  const frame = (at) => {
    globalThis.frames[Math.max(0, Math.min(longest, Math.round(at - before)))] += 1;
    before = at;
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
}

/** The frames since the last sample: how many, and how long the middle and the slow ones took. */
async function framesOf(page) {
  const counts = await page.evaluate(() => {
    const counts = [...globalThis.frames];
    globalThis.frames.fill(0);
    return counts;
  });
  const total = counts.reduce((sum, count) => sum + count, 0);
  const at = (part) => {
    let left = part * total;
    return counts.findIndex((count) => (left -= count) <= 0);
  };
  return { total, median: at(0.5), slow: at(0.99), longest: counts.findLastIndex((count) => 0 < count) };
}

async function heldBy(devtools) {
  for (let time = 0; time < 3; time += 1) await devtools.send("HeapProfiler.collectGarbage");
  const { metrics } = await devtools.send("Performance.getMetrics");
  const of = (name) => metrics.find((metric) => metric.name === name).value;
  return { heap: of("JSHeapUsedSize"), nodes: of("Nodes"), listeners: of("JSEventListeners") };
}

const positionOf = async (page) => Number((await page.locator(".fact", { hasText: "Window" }).locator(".note").textContent()).replace(/\D/g, ""));

/** One look at the page; it must have followed the stream since the last. */
async function sample(page, devtools, before) {
  const position = await until("the stream goes on", async () => {
    const position = await positionOf(page);
    return before < position ? position : null;
  });
  return { position, ...(await framesOf(page)), ...(await heldBy(devtools)), state: await page.locator("#connection").textContent() };
}

/** What has grown, in words. */
function growth(samples) {
  const quarter = Math.floor(samples.length / 4);
  return Object.entries(MORE).flatMap(([name, [part, amount]]) => {
    const lowest = (some) => Math.min(...some.map((sample) => sample[name]));
    const [first, last] = [lowest(samples.slice(0, quarter)), lowest(samples.slice(-quarter))];
    const most = first * (1 + part) + amount;
    console.log(`${name}: at least ${first} in the first quarter, ${last} in the last, at most ${Math.floor(most)} allowed`);
    return last <= most ? [] : [`${name} grew from ${first} to ${last}`];
  });
}

const browser = await launch();
const demo = await Demo.start();
const page = await visit(browser, { viewport: { width: 1920, height: 1080 } });
await page.addInitScript(countFrames, LONGEST);
await page.goto(`${demo.open}&count=20&all=1&item=/summer-sale`);
await until("rows", async () => 5 <= (await rows(page)).length);
await page.locator(".history .dot").first().waitFor();
const devtools = await page.context().newCDPSession(page);
await devtools.send("Performance.enable");

console.log(`${minutes} minutes, ${SAMPLES} samples`);
const samples = [];
const started = Date.now();
for (let number = 1; number <= SAMPLES; number += 1) {
  await sleep(started + (60_000 * minutes * number) / SAMPLES - Date.now());
  const seen = await sample(page, devtools, samples.at(-1)?.position ?? 0);
  samples.push(seen);
  console.log(`${((Date.now() - started) / 60_000).toFixed(1)} min: item ${seen.position}, ${seen.state}; heap ${(seen.heap / 1e6).toFixed(2)} MB, ${seen.nodes} nodes, ${seen.listeners} listeners; ${seen.total} frames: median ${seen.median} ms, 99 % ${seen.slow} ms, longest ${seen.longest} ms`);
}
const problems = [...growth(samples), ...page.faults];
await browser.close();
await demo.end();
problems.forEach((problem) => console.error(`FAILED: ${problem}`));
console.log(problems.length ? "" : "the page did not grow");
process.exitCode = problems.length ? 1 : 0;
