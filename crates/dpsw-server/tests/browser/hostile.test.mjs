// Items come from anybody. Whatever they are called, they are text on the page and in files.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { endAll, enter, launch, rows, Service, settings, stream, until, visit } from "./support.mjs";

const MARKUP = ["<img src=x onerror=alert(1)>", "\"><script>alert(1)</script>", "</span><h1>big</h1>", "javascript:alert(1)", "&lt;b&gt;&amp;", "{{7*7}}${7*7}", "__proto__", "constructor"];
const STEERING = ["a\u202egnp.exe", "\u2066in\u2069out", "bell\u0007\u001b[31mred", "zero\u200bwidth", "tag\u{e0041}", "two\nlines", "line\u2028break"];
const FORMULA = "=cmd|'/C calc'!A0";
const HEBREW = "/שלום";
const LONG = `/${"long-".repeat(2000)}end`;
const ALL = [...MARKUP, ...STEERING, FORMULA, HEBREW, LONG, "", "  blanks  "];
const INTEGER = "18446744073709551615";
let browser;
let service;

before(async () => {
  browser = await launch();
  service = await Service.start(`${settings(stream("found", 1000, "found"))}
[[source]]
name = "numbers"
protects = "event"
epsilon = 1000000.0
columns = { page = "integer" }
[[source.stream]]
name = "integers"
item = "page"
window = 1000
epsilon = 100000.0
keys = { integers = [7] }`);
  const listed = { name: "listed", item: "page", window: 1000, epsilon: 100_000, keys: { list: ALL } };
  await service.request("POST", "/v1/sources/web/streams", JSON.stringify(listed));
  const big = `{"name":"big","item":"page","window":1000,"epsilon":100000,"keys":{"integers":[${INTEGER},7]}}`;
  await service.request("POST", "/v1/sources/numbers/streams", big);
  await service.send(ALL, 200);
  await service.request("POST", "/v1/sources/numbers/events", `{"page":${INTEGER}}\n`.repeat(2000), "application/x-ndjson");
  await service.request("POST", "/v1/sources/web/events", Buffer.from("\xff<b>bytes</b>\n".repeat(200), "latin1"), "text/plain");
  await until("it is counted", async () => (await service.position("listed")) === 200 * ALL.length + 200);
});

after(async () => {
  await browser?.close();
  await service?.end();
  endAll();
});

async function opened(hash) {
  const page = await visit(browser);
  await enter(page, service, hash);
  await until("rows", async () => (await rows(page)).length > 0);
  return page;
}

async function closed(page) {
  assert.deepEqual(page.faults, []);
  await page.context().close();
}

/** Elements that no name may have made. */
const strangers = (page) => page.evaluate(() => document.querySelectorAll("#bars img, #bars script, #bars h1, #bars b, #lookup img, #lookup script, #lookup h1, #lookup b").length);

test("names with markup are shown letter by letter and make no element", async () => {
  const page = await opened("#stream=listed&count=50");
  const names = (await rows(page)).map(({ name }) => name);
  for (const name of MARKUP) assert.ok(names.includes(name), `${name} in ${names.join(" | ").slice(0, 2000)}`);
  assert.equal(await strangers(page), 0);
  await page.locator(".rows .item", { hasText: "<img src=x" }).click();
  await until("the look-up", async () => (await page.locator(".found-name").textContent()) === MARKUP[0]);
  assert.equal(await strangers(page), 0);
  await closed(page);
});

test("characters that steer are shown as what they are, and cannot reorder what stands around them", async () => {
  const page = await opened("#stream=listed&count=50");
  const names = (await rows(page)).map(({ name }) => name);
  for (const name of ["a\\u{202e}gnp.exe", "\\u{2066}in\\u{2069}out", "bell\\u{7}\\u{1b}[31mred", "zero\\u{200b}width", "tag\\u{e0041}", "two\\u{a}lines", "line\\u{2028}break", "(empty)", HEBREW]) {
    assert.ok(names.includes(name), `${name} in ${names.join(" | ").slice(0, 2000)}`);
  }
  const text = await page.locator("body").innerText();
  assert.doesNotMatch(text, /[\u202a-\u202e\u2066-\u2069\u200b\u0007\u001b]/u);
  const isolated = await page.$$eval(".rows .item > *", (all) => all.every((name) => name.localName === "bdi" && getComputedStyle(name).unicodeBidi === "isolate"));
  assert.ok(isolated);
  await closed(page);
});

test("a name of ten kilobytes is cut in the list and whole in the look-up", async () => {
  const page = await opened("#stream=listed&count=50");
  const cut = (await rows(page)).find(({ name }) => name.startsWith("/long-")).name;
  assert.ok(cut.length < 200 && cut.endsWith("…"), cut);
  await page.locator(".rows .item", { hasText: "/long-" }).click();
  await until("the look-up", async () => (await page.locator(".found-name").textContent()) === LONG);
  const isWide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
  assert.ok(!isWide);
  await closed(page);
});

test("found names are shown as safely as listed ones, also bytes that are no text", async () => {
  const page = await opened("#stream=found&count=50");
  const name = "\ufffd<b>bytes</b>";
  await until("the bytes", async () => (await rows(page)).some((row) => row.name === name));
  assert.equal(await strangers(page), 0);
  await page.locator(".rows .item", { hasText: "bytes" }).click();
  await page.locator(".found strong").waitFor();
  assert.match(page.url(), /item-base64=/);
  assert.equal(await page.locator(".found-name").textContent(), name);
  await closed(page);
});

test("integers of 64 bits keep all their digits", async () => {
  const page = await opened("#stream=big");
  assert.equal((await rows(page))[0].name, INTEGER);
  await page.locator(".rows .item").first().click();
  await until("the look-up", async () => (await page.locator(".found-name").textContent()) === INTEGER);
  assert.equal(await page.locator(".found strong").textContent(), "1,000");
  await closed(page);
});

test("files hold hostile names as data: no formula, no markup", async () => {
  const page = await opened("#stream=listed&count=50");
  const exported = async (id) => {
    const [file] = await Promise.all([page.waitForEvent("download"), page.locator(id).click()]);
    const chunks = [];
    for await (const chunk of await file.createReadStream()) chunks.push(chunk);
    return Buffer.concat(chunks).toString("utf8");
  };
  const csv = await exported("#export-csv");
  assert.ok(csv.includes(`'${FORMULA}`) && !csv.includes(`,${FORMULA}`), "no field begins with =");
  assert.ok(csv.includes('"two\nlines"'), "line ends stand in quotes");
  const json = JSON.parse(await exported("#export-json"));
  assert.deepEqual(json.items.map(({ item }) => item).toSorted(), ALL.toSorted());
  const svg = await exported("#export-svg");
  assert.ok(svg.includes("&lt;img src=x"), "markup is escaped");
  assert.doesNotMatch(svg, /<(img|script|h1)/);
  assert.doesNotMatch(svg, /[\u0000-\u0008\u000b\u000c\u000e-\u001f]/);
  await closed(page);
});

test("hostile addresses change nothing but what is shown", async () => {
  for (const hash of ["#stream=%3Cimg%20src=x%20onerror=alert(1)%3E", "#window=%3Cscript%3E&stream=listed", "#item=%00%E2%80%AE&stream=listed", "#count=-1&at-least=9&theme=x&view=__proto__&stream=listed", "#%E0%A4%A"]) {
    const page = await visit(browser);
    await enter(page, service, hash);
    await until(`${hash} shows something`, async () => (await page.locator("#live:visible, #message:visible").count()) === 1);
    assert.equal(await strangers(page), 0);
    assert.equal(await page.locator("main img, main script").count(), 0);
    await closed(page);
  }
});
