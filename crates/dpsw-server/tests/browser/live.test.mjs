// What a person sees of a living stream: bars, numbers, windows, thresholds, look-ups, the contract.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { endAll, enter, launch, rows, Service, settings, stream, until, visit } from "./support.mjs";

const KEYS = ["/", "/cart", "/search", "/help"];
let browser;
let service;

before(async () => {
  browser = await launch();
  service = await Service.start(settings(
    stream("pages", 1000, KEYS, "retention = 2"), stream("asked", 1000, "asked"), stream("still", 10_000_000, KEYS)));
  // 400, 300, 200 and 100 of each thousand, again and again, so that every window is the same.
  await service.send(["/", "/", "/", "/", "/cart", "/cart", "/cart", "/search", "/search", "/help"], 400);
  await until("the stream is counted", async () => (await service.position("pages")) === 4000);
});

after(async () => {
  await browser?.close();
  await service?.end();
  endAll();
});

/** A page with the stream that a test looks at, whose rows are there. */
async function opened(hash = "#stream=pages", options = {}) {
  const page = await visit(browser, options);
  await enter(page, service, hash);
  await until("rows", async () => (await rows(page)).length > 0);
  return page;
}

async function closed(page) {
  assert.deepEqual(page.faults, []);
  await page.context().close();
}

const value = (page, name) => page.locator(".fact", { hasText: name }).locator("strong").textContent();

test("a list shows what the service answers: names, estimates, intervals, shares", async () => {
  const page = await opened();
  const { items } = await service.get("/v1/streams/pages/top?trend=true");
  assert.deepEqual(items.map(({ item, estimate }) => [item, estimate]), [["/", 400], ["/cart", 300], ["/search", 200], ["/help", 100]]);
  const shown = await rows(page);
  assert.deepEqual(shown.map(({ rank, name, value, share, unsure }) => [rank, name, value, share, unsure]), [
    ["1", "/", "400", "40.00 %", false], ["2", "/cart", "300", "30.00 %", false], ["3", "/search", "200", "20.00 %", false], ["4", "/help", "100", "10.00 %", false]]);
  shown.forEach(({ interval }, index) => assert.equal(interval, `${Math.floor(items[index].lower)} – ${Math.ceil(items[index].upper)}`));
  assert.equal(await value(page, "Window"), "1,000 items");
  assert.equal(await value(page, "Sealed"), "100 %");
  await closed(page);
});

test("bars are as long as their numbers, and none is without its interval", async () => {
  const page = await opened();
  await page.emulateMedia({ reducedMotion: "reduce" });
  const drawn = await page.$$eval(".rows .row", (all) => all.map((row) => {
    const [plot, fill, whisker] = [".plot", ".fill", ".whisker"].map((name) => row.querySelector(name).getBoundingClientRect());
    const axis = [...document.querySelectorAll(".tick")].at(-1).textContent.replaceAll(",", "");
    return { value: ((fill.width / plot.width) * Number(axis)), whisker: whisker.width, visible: getComputedStyle(row.querySelector(".whisker")).visibility };
  }));
  [400, 300, 200, 100].forEach((wanted, index) => {
    // The plot has a border of one pixel on its right.
    assert.ok(Math.abs(drawn[index].value - wanted) <= 5, `${drawn[index].value} is drawn for ${wanted}`);
    assert.ok(3 <= drawn[index].whisker && drawn[index].visible === "visible", JSON.stringify(drawn[index]));
  });
  await closed(page);
});

test("a list changes by itself when something new is sealed", async () => {
  const own = await Service.start(settings(stream("pages", 1000, KEYS)));
  const page = await visit(browser);
  await enter(page, own, "#stream=pages");
  await page.getByText("Nothing is sealed yet").waitFor();
  await own.send(["/cart"], 2000);
  await until("the first rows", async () => (await rows(page))[0]?.name === "/cart");
  await own.send(["/help"], 2000);
  await until("another order", async () => (await rows(page))[0]?.name === "/help");
  assert.equal((await rows(page))[0].value, "1,000");
  await until("the state", async () => (await page.locator("#connection").textContent()) === "Live");
  await closed(page);
  await own.end();
});

test("a shorter window is asked for, kept in the address, and a wrong one is explained", async () => {
  const page = await opened();
  await page.locator("#windows input[value='500']").check();
  await until("half the count", async () => (await rows(page))[0]?.value === "200");
  assert.match(page.url(), /window=500/);
  await page.locator("#window").fill("100");
  await page.locator("#window").press("Enter");
  await until("a tenth of the count", async () => (await rows(page))[0]?.value === "40");
  assert.match(page.url(), /window=100/);
  await page.locator("#window").fill("5m");
  await page.locator("#window").press("Enter");
  await page.locator("#question-problem", { hasText: "must be a number of items" }).waitFor();
  await page.goBack();
  await until("the window before", async () => (await rows(page))[0]?.value === "40");
  assert.equal(await page.locator("#question-problem").textContent(), "");
  await closed(page);
});

test("the threshold slider lists what has at least that share", async () => {
  const page = await opened();
  const slider = page.locator("#threshold");
  await slider.focus();
  await page.keyboard.press("End");
  await page.getByText("No item reaches this share.").waitFor();
  // From a half of the window downwards, in steps of the keyboard.
  for (let step = 0; step < 8; step += 1) await page.keyboard.press("ArrowLeft");
  const given = () => Number(new URLSearchParams(new URL(page.url()).hash.slice(1)).get("at-least"));
  await until("the address follows", async () => 0.2 < given() && given() < 0.3);
  const share = given();
  await until("two rows", async () => (await rows(page)).length === 2);
  assert.deepEqual((await rows(page)).map(({ name }) => name), ["/", "/cart"]);
  assert.ok(await page.locator("#line-key").isVisible(), "the line is explained");
  assert.equal(await page.locator("#threshold-says").textContent(), `${(100 * share).toFixed(2)} %`);
  await page.locator("#counts input[value='10']").check();
  await until("all rows", async () => (await rows(page)).length === 4);
  await closed(page);
});

test("an item is looked up with its history, from the list and by name", async () => {
  const page = await opened();
  await page.locator(".rows .item", { hasText: "/cart" }).click();
  await page.locator(".found strong", { hasText: "300" }).waitFor();
  assert.match(page.url(), /item=%2Fcart/);
  assert.match(await page.locator("#lookup").textContent(), /30\.00 % of the window/);
  const { substreams } = await service.get("/v1/streams/pages/history?item=/cart");
  assert.ok(1 < substreams.length);
  assert.equal(await page.locator(".history .dot").count(), substreams.length);
  assert.ok(await page.locator(".history .band").count());
  await page.locator("#lookup summary").click();
  const cells = await page.$$eval("#lookup tbody tr", (all) => all.map((row) => Number(row.cells[1].textContent.replaceAll(",", ""))));
  assert.deepEqual(cells, substreams.map(({ estimate }) => Math.round(estimate)).toReversed());
  await page.locator("#lookup-item").fill("/nowhere");
  await page.locator("#lookup-item").press("Enter");
  await page.locator("#lookup .problem", { hasText: "not in the public list" }).waitFor();
  await closed(page);
});

test("a looked-up item never stands in an address that is asked for", async () => {
  const page = await opened();
  const asked = [];
  page.on("request", (request) => asked.push(request.url()));
  await page.locator(".rows .item", { hasText: "/search" }).click();
  await page.locator(".found strong", { hasText: "200" }).waitFor();
  assert.ok(asked.some((url) => url.includes("/history")), asked.join(" "));
  assert.ok(asked.every((url) => !decodeURIComponent(new URL(url).search).includes("search")), asked.join(" "));
  await closed(page);
});

test("a stream that lists nothing says so and can be asked", async () => {
  const page = await visit(browser);
  await enter(page, service, "#stream=asked");
  await page.getByText("The keys of this stream are not listed").waitFor();
  await page.locator("#lookup-item").fill("/help");
  await page.locator("#lookup-form button").click();
  await page.locator(".found strong", { hasText: "100" }).waitFor();
  await until("the window", async () => (await value(page, "Window")) === "1,000 items");
  await closed(page);
});

test("before anything is sealed the page says when there will be something", async () => {
  const page = await visit(browser);
  await enter(page, service, "#stream=still");
  const { plan } = await service.get("/v1/streams/still");
  await page.getByText(`after every ${plan.substream_len.toLocaleString("en-US")} items`).waitFor();
  await closed(page);
});

test("the contract says the promise, the budget, and how good an attacker's guess is", async () => {
  const own = await Service.start(`
address = "127.0.0.1:0"
data = "data"
[[source]]
name = "web"
protects = "event"
epsilon = 2.0
columns = { page = "text" }
[[source.stream]]
name = "pages"
item = "page"
window = 1000
epsilon = 0.5
keys = { list = ["/"] }`);
  const page = await visit(browser);
  await enter(page, own);
  const contract = page.locator("#contract");
  await contract.getByText("All that is ever released, taken together, has epsilon = 0.5").waitFor();
  const text = await contract.textContent();
  assert.match(text, /ε 0\.5 of 2/);
  // e^0.5 / (1 + e^0.5) = 0.62246, rounded up.
  assert.match(text, /right at most 62\.3 % of the time/);
  assert.match(text, /what any one event was about/);
  const meter = contract.getByRole("meter");
  assert.deepEqual([await meter.getAttribute("aria-valuenow"), await meter.getAttribute("aria-valuemax")], ["0.5", "2"]);
  const spent = await meter.locator(".spent").evaluate((bar) => bar.getBoundingClientRect().width / bar.parentElement.clientWidth);
  assert.ok(Math.abs(spent - 0.25) < 0.01, `${spent}`);
  await closed(page);
  await own.end();
});

test("where presence is private no number of items is on the page", async () => {
  const own = await Service.start(`
address = "127.0.0.1:0"
data = "data"
[[source]]
name = "quiet"
protects = "presence"
epsilon = 1000000.0
columns = { page = "text" }
[[source.stream]]
name = "seconds"
item = "page"
window = "10s"
expected = 1000
epsilon = 100000.0
keys = { list = ["/", "/cart"] }`);
  await own.send(["/", "/", "/cart"], 300, "quiet");
  const page = await visit(browser);
  await enter(page, own);
  await until("a row", async () => (await rows(page)).length > 0);
  assert.equal(await value(page, "Items"), "private");
  assert.ok(!(await page.locator("body").textContent()).includes("900"), "three hundred times three is nowhere");
  await closed(page);
  await own.end();
});

/** Answers `live` with the service's own list, changed. */
const answered = async (page, change) => {
  const answer = await service.get("/v1/streams/pages/top?trend=true");
  change(answer);
  const body = `event: top\nid: 1\ndata: ${JSON.stringify(answer)}\n\n`;
  await page.route("**/live?*", (route) => route.fulfill({ contentType: "text/event-stream", body }));
};

test("where nothing is known of an end, no bar looks certain", async () => {
  const page = await visit(browser, { reducedMotion: "reduce" });
  await answered(page, ({ items }) => {
    items[0].upper = null;
    [items[1].lower, items[1].upper] = [null, null];
  });
  await enter(page, service, "#stream=pages");
  await until("rows", async () => (await rows(page)).length === 4);
  assert.deepEqual((await rows(page)).slice(0, 2).map(({ interval }) => interval.replace(/^\d+/, "n")), ["n – ?", "? – ?"]);
  const ends = await page.$$eval(".rows .row", (all) => all.slice(0, 2).map((row) => {
    const [plot, whisker] = [".plot", ".whisker"].map((name) => row.querySelector(name).getBoundingClientRect());
    return [(whisker.left - plot.left) / plot.width, (whisker.right - plot.left) / plot.width];
  }));
  ends.forEach(([, end]) => assert.ok(0.98 < end, JSON.stringify(ends)));
  assert.ok(ends[1][0] < 0.02, JSON.stringify(ends));
  await closed(page);
});

test("what is predicted is said to be", async () => {
  const page = await visit(browser);
  const end = Date.now();
  let sealed = 15_000;
  const change = (answer) => Object.assign(answer, { total: 118_390, window: { start: end - 60_000, end, unit: "ms" }, covered: { start: end - 60_000, end: end - 60_000 + sealed, unit: "ms" } });
  await answered(page, change);
  await enter(page, service, "#stream=pages");
  await page.locator("#predicted", { hasText: "Only 25 % of this window is sealed" }).waitFor();
  assert.equal(await value(page, "Items"), "≈ 118,390");
  sealed = 60_000;
  await page.unroute("**/live?*");
  await answered(page, change);
  await page.reload();
  await until("nothing is predicted", async () => (await rows(page)).length === 4 && (await value(page, "Items")) === "118,390");
  assert.equal(await page.locator("#predicted").isVisible(), false);
  await closed(page);
});

test("until a question is answered, the page says what the list before it is about", async () => {
  const page = await opened();
  const about = () => page.locator("#about").textContent();
  assert.match(await about(), /in the last 1,000 items/);
  await page.locator("#pause").click();
  await page.locator("#windows input[value='500']").check();
  await until("the address", async () => page.url().includes("window=500"));
  await page.locator("#banner", { hasText: "Paused" }).waitFor();
  assert.match(await about(), /in the last 1,000 items/);
  assert.equal((await rows(page))[0].value, "400");
  await page.locator("#pause").click();
  await until("its own list", async () => (await rows(page))[0].value === "200");
  await until("its own words", async () => (await about()).includes("in the last 500 items"));
  await page.locator("#window").fill("5m");
  await page.locator("#window").press("Enter");
  await page.locator("#question-problem", { hasText: "The list is the one before." }).waitFor();
  assert.match(await about(), /in the last 500 items/);
  assert.ok(await page.locator("#live.old").count(), "it is greyed");
  await closed(page);
});

test("a window without a whole substream has no history, and says why", async () => {
  const page = await opened("#stream=pages&window=10&item=%2Fcart");
  await page.locator("#lookup", { hasText: "No whole substream of this window is sealed" }).waitFor();
  await closed(page);
});

test("times of another day say which day", async () => {
  const page = await opened("#stream=pages&item=%2Fcart");
  const [moments, sums] = await page.evaluate(async () => {
    const { moment, parameter } = await import(new URL("dashboard/words.js", document.baseURI));
    const at = (...when) => new Date(2026, 0, ...when).getTime();
    return [[at(9, 8, 5, 1), at(10, 8, 5, 1)].map((ms) => moment(ms, at(10, 23))), [0.1 + 0.2, 3e-10 + 1e-26, 1e-10, 0.5].map(parameter)];
  });
  assert.deepEqual(moments, ["9 Jan, 08:05:01", "08:05:01"]);
  assert.deepEqual(sums, ["0.3", "3e-10", "1e-10", "0.5"]);
  await closed(page);
});

test("what is chosen comes back with the address", async () => {
  const page = await opened("#stream=pages&window=500&count=20&item=%2Fcart&theme=dark");
  await until("half the count", async () => (await rows(page))[0]?.value === "200");
  await page.locator(".found strong", { hasText: "150" }).waitFor();
  assert.ok(await page.locator("#counts input[value='20']").isChecked());
  assert.ok(await page.locator("#windows input[value='500']").isChecked());
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "dark");
  await closed(page);
});

test("exports hold what is shown", async () => {
  const page = await opened();
  const exported = async (id) => {
    const [file] = await Promise.all([page.waitForEvent("download"), page.locator(id).click()]);
    const chunks = [];
    for await (const chunk of await file.createReadStream()) chunks.push(chunk);
    return [file.suggestedFilename(), Buffer.concat(chunks).toString("utf8")];
  };
  const [name, csv] = await exported("#export-csv");
  assert.equal(name, "pages-4000.csv");
  const [head, first] = csv.split("\r\n").map((line) => line.split(","));
  const of = (column) => first[head.indexOf(column)];
  assert.deepEqual([of("rank"), of("item"), of("estimate"), of("window_end"), of("total")], ["1", "/", "400", "4000", "1000"]);
  const [, json] = await exported("#export-json");
  assert.deepEqual(JSON.parse(json).items.map(({ item }) => item), KEYS);
  const [, svg] = await exported("#export-svg");
  const drawn = await page.evaluate((text) => {
    const image = new Image();
    image.src = `data:image/svg+xml,${encodeURIComponent(text)}`;
    return [...text.matchAll(/<text[^>]*>([^<]*)</g)].map(([, words]) => words);
  }, svg);
  assert.ok(drawn.includes("/cart") && drawn.some((words) => words.includes("300")), drawn.join("|"));
  page.faults = page.faults.filter((fault) => !fault.includes("data:image"));
  await closed(page);
});
