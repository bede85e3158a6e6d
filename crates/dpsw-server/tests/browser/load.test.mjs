// Ten thousand keys, and an hour of updates in a minute: the page neither grows nor draws more often than it can be seen.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { endAll, enter, launch, rows, Service, settings, sleep, stream, until, visit } from "./support.mjs";

const KEYS = 10_000;
/** An hour of a stream that changes every second. */
const UPDATES = 3600;
/** Beyond these many bytes after a collection, the page has grown. Garbage that the engine keeps for itself stays below. */
const GROWTH_MAX = 3e6;
let browser;
let service;

before(async () => {
  browser = await launch(["--enable-precise-memory-info", "--js-flags=--expose-gc"]);
  service = await Service.start(settings());
  const names = Array.from({ length: KEYS }, (_, index) => `/page/${index}`);
  const many = { name: "many", item: "page", window: 20_000, epsilon: 1, keys: { list: names } };
  await service.request("POST", "/v1/sources/web/streams", JSON.stringify(many));
  // Half of the items are the first key, so that whatever the noise it stands first.
  await service.send([...names, ...Array.from({ length: KEYS }, () => "/page/0")], 2);
  await until("it is sealed", async () => (await service.position("many")) === 4 * KEYS);
});

after(async () => {
  await browser?.close();
  await service?.end();
  endAll();
});

const slots = (page) => page.locator(".rows .row").count();

test("of ten thousand rows those that can be seen are in the page, down to the last", async () => {
  const page = await visit(browser);
  await enter(page, service, "#stream=many&all=1&count=10000");
  await until("rows", async () => 15 < (await slots(page)));
  assert.equal(await page.locator("#bars").getAttribute("aria-rowcount"), String(KEYS + 1));
  assert.equal((await rows(page))[0].name, "/page/0");
  for (const part of [0.1, 0.5, 0.9]) {
    await page.evaluate((part) => scrollTo(0, part * document.documentElement.scrollHeight), part);
    await until("rows are there", () => page.evaluate(() => document.elementFromPoint(300, 500)?.closest(".rows .row") !== null));
    assert.ok((await slots(page)) < 100, `${await slots(page)}`);
  }
  await page.evaluate(() => scrollTo(0, document.documentElement.scrollHeight));
  await until("the last row", async () => (await rows(page)).at(-1)?.rank === "10,000");
  assert.deepEqual(page.faults, []);
  await page.context().close();
});

/** Stands before the service and answers `live` itself, as fast as it is told. */
class Fast {
  static async start() {
    const fast = new Fast();
    fast.server = createServer((request, reply) => fast.answer(request, reply));
    fast.server.listen(0, "127.0.0.1");
    await once(fast.server, "listening");
    fast.address = `http://127.0.0.1:${fast.server.address().port}`;
    return fast;
  }

  async answer(request, reply) {
    if (new URL(request.url, this.address).pathname.endsWith("/live")) {
      reply.writeHead(200, { "content-type": "text/event-stream" });
      this.live = reply;
      return;
    }
    const body = request.method === "POST" ? await new Response(request).arrayBuffer() : undefined;
    const headers = { authorization: request.headers.authorization ?? "", "content-type": request.headers["content-type"] ?? "" };
    const got = await fetch(service.address + request.url, { method: request.method, headers, body });
    reply.writeHead(got.status, Object.fromEntries(["content-type", "content-security-policy", "date"].map((name) => [name, got.headers.get(name) ?? ""])));
    reply.end(Buffer.from(await got.arrayBuffer()));
  }

  async send(answer, number) {
    if (!this.live.write(`event: top\nid: ${number}\ndata: ${JSON.stringify(answer)}\n\n`)) await once(this.live, "drain");
  }

  end() {
    this.server.closeAllConnections();
    this.server.close();
  }
}

/** The same answer a moment later: other numbers, sometimes another order. */
function later(answer, number) {
  const moved = answer.items.map((row, index) => {
    const estimate = Math.max(1, row.estimate * (1 + 0.2 * Math.sin(number / 9 + index)));
    return { ...row, estimate, lower: 0.95 * estimate, upper: 1.05 * estimate, trend: ["rising", "steady", "falling"][(number + index) % 3] };
  });
  const items = moved.toSorted((a, b) => b.estimate - a.estimate).map((row, index) => ({ ...row, rank: index + 1 }));
  return { ...answer, window: { ...answer.window, start: answer.window.start + number, end: answer.window.end + number }, items };
}

/** What the page holds after a collection. */
async function held(devtools) {
  for (let time = 0; time < 3; time += 1) await devtools.send("HeapProfiler.collectGarbage");
  const { metrics } = await devtools.send("Performance.getMetrics");
  const of = (name) => metrics.find((metric) => metric.name === name).value;
  return { heap: of("JSHeapUsedSize"), nodes: of("Nodes"), listeners: of("JSEventListeners") };
}

async function simulate(t, count, updates) {
  const fast = await Fast.start();
  t.after(() => fast.end());
  const page = await visit(browser);
  await page.addInitScript((token) => {
    sessionStorage.setItem("dpsw-token", token);
    // How often answers are read, and frames: between two frames there is at most one.
    globalThis.seen = { answers: 0, inFrame: 0, mostInFrame: 0, frames: [], readAt: -Infinity, leastPause: Infinity };
    const parse = JSON.parse;
    JSON.parse = (text, ...more) => {
      if (text.startsWith('{"window"')) {
        const { seen } = globalThis;
        seen.leastPause = Math.min(seen.leastPause, performance.now() - seen.readAt);
        seen.readAt = performance.now();
        seen.answers += 1;
        seen.inFrame += 1;
        seen.mostInFrame = Math.max(seen.mostInFrame, seen.inFrame);
      }
      return parse(text, ...more);
    };
    const frame = (at) => {
      globalThis.seen.inFrame = 0;
      globalThis.seen.frames.push(at);
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  }, service.token);
  await page.goto(`${fast.address}/#stream=many&all=1&count=${count}`);
  await until("it follows", () => fast.live);
  const answer = await service.get(`/v1/streams/many/top?all=true&count=${count}`);
  const devtools = await page.context().newCDPSession(page);
  await devtools.send("Performance.enable");
  const run = async (from, to) => {
    for (let number = from; number < to; number += 1) {
      await fast.send(later(answer, number), number);
      // About a hundred per second: more than a screen has frames.
      await sleep(count < 1000 ? 8 : 0);
    }
    await until("the newest is shown", async () => {
      const end = (answer.window.end + to - 1).toLocaleString("en-US");
      return (await page.locator(".fact", { hasText: "Window" }).textContent()).includes(end);
    });
  };
  const warm = Math.floor(updates / 6);
  await run(0, warm);
  const first = await held(devtools);
  await page.evaluate(() => (globalThis.seen.frames = []));
  await run(warm, updates);
  const seen = await page.evaluate(() => globalThis.seen);
  await page.evaluate(() => (globalThis.seen.frames = []));
  const last = await held(devtools);
  const times = seen.frames.slice(1).map((at, index) => at - seen.frames[index]).toSorted((a, b) => a - b);
  const at = (part) => times[Math.floor(part * (times.length - 1))]?.toFixed(1);
  t.diagnostic(`${count} rows, ${updates} updates, ${seen.answers} drawn, ${times.length} frames: median ${at(0.5)} ms, 95 % ${at(0.95)} ms, 99 % ${at(0.99)} ms, longest ${at(1)} ms`);
  t.diagnostic(`heap ${(first.heap / 1e6).toFixed(2)} -> ${(last.heap / 1e6).toFixed(2)} MB, nodes ${first.nodes} -> ${last.nodes}, listeners ${first.listeners} -> ${last.listeners}`);
  // Half a second, as clocks of browsers are rounded.
  if (count === KEYS) assert.ok(490 < seen.leastPause, `a long list was read again after ${seen.leastPause} ms`);
  assert.ok(seen.mostInFrame <= 1, `${seen.mostInFrame} answers were drawn between two frames`);
  assert.ok(last.heap - first.heap < GROWTH_MAX, JSON.stringify([first, last]));
  assert.ok(last.nodes <= first.nodes + 40 && last.listeners <= first.listeners + 5, JSON.stringify([first, last]));
  assert.deepEqual(page.faults, []);
  await page.context().close();
}

test("an hour of updates of a hundred rows leaves nothing behind", (t) => simulate(t, 100, UPDATES));
test("updates of ten thousand rows leave nothing behind", (t) => simulate(t, KEYS, 120));
