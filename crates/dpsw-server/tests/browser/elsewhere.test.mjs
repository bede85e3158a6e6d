// A stream that is sealed elsewhere is shown like the others, and says that it costs nothing here.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { endAll, enter, launch, rows, Service, settings, stream, until, visit } from "./support.mjs";

let browser;
let service;

/** The view of a stream that is counted here, sent back under another name. */
async function publish(name) {
  const headers = { Authorization: `Bearer ${service.token}` };
  const view = await fetch(`${service.address}/v1/streams/pages/view`, { headers });
  await service.request("PUT", `/v1/streams/${name}/view`, await view.arrayBuffer(), "application/vnd.dpsw.view");
}

before(async () => {
  browser = await launch();
  service = await Service.start(settings(stream("pages", 1000, ["/", "/cart"])));
  await service.send(["/", "/", "/cart"], 1000);
  await until("the stream is counted", async () => (await service.position("pages")) === 3000);
  await publish("sales");
});

after(async () => {
  await browser?.close();
  await service?.end();
  endAll();
});

test("it is drawn, follows its views, and its contract has no budget", async () => {
  const page = await visit(browser);
  await enter(page, service, "#stream=sales");
  await until("rows", async () => (await rows(page)).length === 2);
  assert.equal((await rows(page))[0].name, "/");
  assert.equal(await page.locator("#about").textContent(), "The most frequent items in the last 1,000 items, sealed elsewhere");
  assert.equal(await page.locator("#stream option:checked").textContent(), "sales · sealed elsewhere");
  await until("the contract", async () => (await page.locator("#contract").textContent()).includes("Spent"));
  const contract = await page.locator("#contract").textContent();
  assert.match(contract, /sealed elsewhere, where that is spent\./);
  assert.doesNotMatch(contract, /Budget of source|null|undefined/);
  await service.send(["/cart"], 2000);
  await until("the stream is counted", async () => (await service.position("pages")) === 5000);
  await publish("sales");
  await until("the new view is drawn", async () => (await rows(page))[0].name === "/cart");
  assert.deepEqual(page.faults, []);
  await page.context().close();
});

test("it is listed apart from the sources, and can be deleted", async () => {
  const page = await visit(browser);
  await enter(page, service, "#view=admin");
  const card = page.locator("section.card", { hasText: "Sealed elsewhere" });
  await card.waitFor();
  const cells = await card.locator("tbody td").allTextContents();
  assert.deepEqual([...cells.slice(0, 4), cells[5]], ["sales", "text", "last 1,000 items", "2 listed", "–"]);
  assert.doesNotMatch(await page.locator("section.card", { hasText: "Source web" }).textContent(), /sales/);
  await service.request("DELETE", "/v1/streams/sales");
  await page.reload();
  await page.getByRole("heading", { name: "Source web" }).waitFor();
  assert.equal(await card.count(), 0);
  assert.deepEqual(page.faults, []);
  await page.context().close();
});
