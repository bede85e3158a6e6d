// Sources and streams are checked, made and deleted; nothing is deleted by one click.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { endAll, enter, launch, Service, settings, stream, until, visit } from "./support.mjs";

let browser;
let service;
let page;

before(async () => {
  browser = await launch();
  service = await Service.start(settings(stream("pages", 1000, ["/", "/cart"])));
  page = await visit(browser);
  await enter(page, service, "#view=admin");
  await page.getByRole("heading", { name: "Source web" }).waitFor();
});

after(async () => {
  await browser?.close();
  await service?.end();
  endAll();
});

const card = (name) => page.locator("section.card", { hasText: name });

test("sources, streams, ledger and health are shown", async () => {
  const web = card("Source web");
  const { sources: [{ ledger }] } = await service.get("/v1/sources");
  assert.match(await web.textContent(), new RegExp(`ε ${ledger.epsilon_spent} of ${ledger.epsilon}`));
  assert.deepEqual(await web.locator("table").first().locator("tbody td").allTextContents().then((cells) => cells.slice(0, 4)), ["pages", "page", "last 1,000 items", "2 listed"]);
  await web.getByText("Ledger: 1 charges").click();
  assert.match(await web.locator("details table").textContent(), /pages100000.*running/);
  assert.match(await card("Health").textContent(), /takes events/);
});

test("a source is checked, then made; a wrong one is explained", async () => {
  const form = card("New source").last();
  await form.locator("summary").click();
  await form.getByLabel("Name").fill("shop");
  await form.getByLabel("Budget ε").fill("-1");
  await form.getByRole("button", { name: "Check" }).click();
  await form.locator(".problem", { hasText: "epsilon" }).waitFor();
  await form.getByLabel("Budget ε").fill("2");
  await form.getByLabel("Budget δ").fill("1e-9");
  await form.getByLabel("Columns").fill("page text\nstatus integer");
  await form.getByRole("button", { name: "Check" }).click();
  await form.getByText("Source shop could be made. Nothing was made.").waitFor();
  assert.equal((await service.get("/v1/sources")).sources.length, 1);
  await form.getByRole("button", { name: "New source" }).click();
  await page.getByRole("heading", { name: "Source shop" }).waitFor();
  const made = (await service.get("/v1/sources")).sources.find(({ name }) => name === "shop");
  assert.deepEqual([made.columns, made.ledger.epsilon, made.ledger.delta], [{ page: "text", status: "integer" }, 2, 1e-9]);
});

test("a stream is checked with its plan, made, and charged; one too many is refused", async () => {
  const shop = card("Source shop").first();
  await shop.getByText("New stream of shop").first().click();
  await shop.getByLabel("Name").fill("visits");
  await shop.getByLabel("Window", { exact: true }).fill("15m");
  await shop.getByLabel("Expected items").fill("5000");
  await shop.getByLabel("ε", { exact: true }).fill("1.5");
  await shop.getByRole("button", { name: "Check" }).click();
  await shop.locator("pre", { hasText: "the last 15m" }).waitFor();
  assert.equal((await service.get("/v1/streams")).streams.length, 1);
  await shop.getByRole("button", { name: "New stream of shop" }).click();
  await shop.getByRole("button", { name: "Delete stream visits" }).waitFor();
  const made = await service.get("/v1/streams/visits");
  assert.deepEqual([made.window, made.expected, made.keys, made.plan.epsilon], ["15m", 5000, "found", 1.5]);
  assert.match(await shop.textContent(), /ε 1\.5 of 2/);
  await shop.getByText("New stream of shop").first().click();
  await shop.getByLabel("Name").fill("more");
  await shop.getByRole("button", { name: "New stream of shop" }).click();
  await shop.locator(".problem", { hasText: "budget" }).waitFor();
});

test("a new stream can be watched at once", async () => {
  await page.getByRole("button", { name: "visits", exact: true }).click();
  await page.getByRole("heading", { name: "visits" }).waitFor();
  assert.ok((await page.locator("#stream option").allTextContents()).includes("visits · shop"));
  await page.goBack();
  await page.getByRole("heading", { name: "Administration" }).waitFor();
});

test("deleting needs the name, and what was charged stays charged", async () => {
  await service.send(["/"], 100, "shop");
  await page.getByRole("button", { name: "Delete stream visits" }).click();
  const dialog = page.locator("dialog[open]");
  const button = dialog.getByRole("button", { name: "Delete" });
  assert.ok(await button.isDisabled());
  await dialog.getByRole("textbox").fill("visit");
  assert.ok(await button.isDisabled());
  await dialog.getByRole("button", { name: "Keep it" }).click();
  assert.equal((await service.get("/v1/streams")).streams.length, 2);
  await page.getByRole("button", { name: "Delete stream visits" }).click();
  await dialog.getByRole("textbox").fill("visits");
  await dialog.getByRole("textbox").press("Enter");
  await until("it is gone", async () => (await service.get("/v1/streams")).streams.length === 1);
  const shop = card("Source shop").first();
  await shop.getByText("No streams yet.").waitFor();
  assert.match(await shop.textContent(), /ε 1\.5 of 2/);
  await shop.getByRole("button", { name: "Delete source" }).click();
  await dialog.getByRole("textbox").fill("shop");
  await button.click();
  await until("the source is gone", async () => (await service.get("/v1/sources")).sources.length === 1);
  assert.deepEqual(page.faults, []);
});

test("health says which brokers are not read, and why", async () => {
  const broker = { kind: "redis", address: "127.0.0.1:1", topic: "visits", routing: "independent" };
  const source = { name: "queue", protects: "event", epsilon: 10, columns: { page: "text" }, broker };
  await service.request("POST", "/v1/sources", JSON.stringify(source));
  const queued = { name: "queued", item: "page", window: 1000, epsilon: 1, keys: { list: ["a"] } };
  await service.request("POST", "/v1/sources/queue/streams", JSON.stringify(queued));
  await until("the trouble is known", async () => (await service.get("/v1/status")).brokers.length);
  await page.reload();
  await page.getByRole("heading", { name: "Source queue" }).waitFor();
  assert.match(await card("Health").textContent(), /source "queue" cannot read its broker/);
});
