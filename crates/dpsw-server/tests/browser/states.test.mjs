// What happens when things are missing or go wrong: tokens, streams, connections.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Demo, endAll, enter, launch, rows, Service, settings, stream, until, visit } from "./support.mjs";

const PAGES = settings(stream("pages", 1000, ["/", "/cart"]));
let browser;

before(async () => {
  browser = await launch();
});
after(async () => {
  await browser?.close();
  endAll();
});

async function started(toml = PAGES) {
  const service = await Service.start(toml);
  if (toml === PAGES) {
    await service.send(["/", "/", "/cart"], 1000);
    await until("it is counted", async () => (await service.position("pages")) === 3000);
  }
  return service;
}

async function closed(page) {
  assert.deepEqual(page.faults, []);
  await page.context().close();
}

const says = (page, id, text) => until(`${id} says ${text}`, async () => (await page.locator(id).textContent()).includes(text));
const isListed = (page) => until("rows", async () => (await rows(page)).length === 2);

test("without a token one is asked for, a wrong one is refused, a right one stays in this tab alone", async () => {
  const service = await started();
  const page = await visit(browser);
  await page.goto(service.address);
  const field = page.getByLabel("Token", { exact: true });
  await field.waitFor();
  await field.fill("dpsw_wrong");
  await page.getByRole("button", { name: "Show the streams" }).click();
  await says(page, "#token-problem", "does not know this token");
  assert.equal(await field.inputValue(), "");
  await field.fill(service.token);
  await field.press("Enter");
  await isListed(page);
  const kept = await page.evaluate(() => [Object.values(sessionStorage), Object.values(localStorage), document.cookie, location.href, document.documentElement.outerHTML]);
  assert.deepEqual(kept[0], [service.token]);
  kept.slice(1).forEach((place) => assert.ok(!JSON.stringify(place).includes(service.token)));
  await page.reload();
  await isListed(page);
  await page.locator(".rows .item").first().click();
  await page.getByRole("button", { name: "Forget token" }).click();
  await field.waitFor();
  assert.deepEqual(await page.evaluate(() => Object.values(sessionStorage)), []);
  assert.doesNotMatch(page.url(), /item|stream/, "whoever comes next is not shown what was asked");
  assert.equal(await page.locator(".rows .row:visible").count(), 0);
  await closed(page);
  await service.end();
});

test("a token behind the address is taken out of it at once", async () => {
  const service = await started();
  const page = await visit(browser);
  const asked = [];
  page.on("request", (request) => asked.push(request.url()));
  // Where the page is whenever it asks for something.
  await page.addInitScript(() => {
    const ask = fetch;
    globalThis.addresses = [];
    globalThis.fetch = (...given) => {
      globalThis.addresses.push(location.href);
      return ask(...given);
    };
  });
  await page.goto(`${service.address}/#count=20&token=${service.token}`);
  await isListed(page);
  const addresses = await page.evaluate(() => globalThis.addresses);
  assert.ok(3 < addresses.length && addresses.every((address) => !address.includes("token")), addresses.join(" "));
  assert.ok(!page.url().includes("token"), page.url());
  assert.match(page.url(), /count=20/);
  assert.ok(asked.every((url) => !url.includes(service.token)));
  await page.goto(`${service.address}/openapi.json`);
  await page.goBack();
  await isListed(page);
  assert.ok(!page.url().includes("token"), page.url());
  await closed(page);
  await service.end();
});

test("a token that may only ask sees no administration, and one that is deleted is asked for again", async () => {
  const service = await started();
  const token = await service.reader();
  const page = await visit(browser);
  await enter(page, service, "", token);
  await isListed(page);
  assert.equal(await page.locator("#to-admin").isVisible(), false);
  await service.request("DELETE", `/v1/tokens/${token.split("_")[1]}`);
  await service.send(["/"], 1000);
  await says(page, "#token-problem", "no longer known");
  assert.equal(await page.locator(".rows .row:visible").count(), 0);
  await closed(page);
  await service.end();
});

test("without streams the page says what to do", async () => {
  const service = await started(settings());
  const page = await visit(browser);
  await enter(page, service);
  await says(page, "#message", "There are no streams yet");
  await page.getByRole("button", { name: "Make a stream" }).click();
  await page.getByRole("heading", { name: "Administration" }).waitFor();
  await closed(page);
  await service.end();
});

test("where there is no such stream the page says so, and any other can be chosen", async () => {
  const service = await started();
  const page = await visit(browser);
  await enter(page, service, "#stream=none");
  await says(page, "#message", "The stream none is gone");
  assert.equal(await page.locator("#stream").inputValue(), "", "no stream looks chosen");
  await page.locator("#stream").selectOption("pages");
  await isListed(page);
  await closed(page);
  await service.end();
});

test("a lost connection is said, what was known stays, and the page comes back by itself", async () => {
  const service = await started();
  const page = await visit(browser);
  await enter(page, service);
  await isListed(page);
  const known = await rows(page);
  await service.kill();
  await says(page, "#connection", "Reconnecting");
  await says(page, "#banner", "What you see is from");
  assert.deepEqual(await rows(page), known);
  await service.again();
  await says(page, "#connection", "Live");
  await until("the banner is gone", async () => !(await page.locator("#banner").isVisible()));
  await service.send(["/cart"], 3000);
  await until("what came since", async () => (await rows(page))[0].name === "/cart");
  await closed(page);
  await service.end();
});

test("a page that is opened before the service waits for it", async () => {
  const service = await started();
  const page = await visit(browser);
  await page.context().route("**/v1/**", (route) => route.abort());
  await enter(page, service);
  await says(page, "#message", "cannot be reached");
  await page.context().unroute("**/v1/**");
  await isListed(page);
  await closed(page);
  await service.end();
});

test("a page that is left open takes the files of a new service", async () => {
  const service = await started();
  const page = await visit(browser);
  let version = "1";
  await page.route("**/version", (route) => route.fulfill({ json: { name: "dpsw-server", version } }));
  await enter(page, service);
  await isListed(page);
  await page.evaluate(() => (globalThis.isOld = true));
  await service.kill();
  await says(page, "#connection", "Reconnecting");
  version = "2";
  await service.again();
  await until("it is loaded anew", async () => !(await page.evaluate(() => globalThis.isOld).catch(() => true)));
  await isListed(page);
  await closed(page);
  await service.end();
});

test("a paused page stands still and goes on where the stream is", async () => {
  const service = await started();
  const page = await visit(browser);
  await enter(page, service);
  await isListed(page);
  await page.getByRole("button", { name: "Pause" }).click();
  await says(page, "#connection", "Paused");
  await service.send(["/cart"], 3000);
  await until("it is counted", async () => (await service.position("pages")) === 6000);
  const { items } = await service.get("/v1/streams/pages/top");
  assert.equal(items[0].item, "/cart");
  // A page that follows hears of it within a moment: another one shows that.
  const other = await visit(browser);
  await enter(other, service);
  await until("the other page", async () => (await rows(other))[0]?.name === "/cart");
  assert.equal((await rows(page))[0].name, "/");
  await page.getByRole("button", { name: "Go on" }).click();
  await until("what came since", async () => (await rows(page))[0].name === "/cart");
  await closed(other);
  await closed(page);
  await service.end();
});

test("a stream that is deleted while it is watched is said to be gone", async () => {
  const service = await started();
  const page = await visit(browser);
  await enter(page, service);
  await isListed(page);
  await service.request("DELETE", "/v1/streams/pages");
  await says(page, "#message", "There are no streams yet");
  await closed(page);
  await service.end();
});

test("the demo says an address that shows a living stream", async (t) => {
  const demo = await Demo.start();
  const page = await visit(browser);
  const opened = Date.now();
  await page.goto(demo.open);
  await until("rows", async () => 5 <= (await rows(page)).length);
  t.diagnostic(`rows were there ${Date.now() - opened} ms after the page was opened`);
  const position = () => page.locator(".fact", { hasText: "Window" }).locator(".note").textContent();
  const before = await position();
  await until("it lives", async () => (await position()) !== before);
  assert.equal((await rows(page))[0].name, "/");
  await closed(page);
  await demo.end();
});
