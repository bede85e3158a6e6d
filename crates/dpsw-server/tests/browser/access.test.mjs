// For everybody: axe-core finds nothing in any state, everything can be reached by keyboard, phones and darkness are no obstacle.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { AXE, endAll, enter, launch, rows, Service, settings, sleep, stream, until, visit } from "./support.mjs";

let browser;
let service;

before(async () => {
  browser = await launch();
  service = await Service.start(settings(stream("pages", 1000, ["/", "/cart", "/search", "/help"]), stream("still", 10_000_000, ["/"])) + `
[[source]]
name = "shop"
protects = "event"
epsilon = 2.0
columns = { page = "text" }
[[source.stream]]
name = "noisy"
item = "page"
window = 1000
epsilon = 0.2
keys = { list = ["/", "/a", "/b", "/c", "/d", "/e", "/f", "/g"] }`);
  await service.send(["/", "/", "/", "/cart", "/search"], 800);
  await service.send(["/", "/", "/", "/a"], 800, "shop");
  await until("it is counted", async () => (await service.position("pages")) === 4000 && (await service.position("noisy")) === 3200);
});

after(async () => {
  await browser?.close();
  await service?.end();
  endAll();
});

/** Every rule of axe-core; what it finds, in a line each. */
async function faults(page) {
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }));
  return violations.flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) => `${id}: ${html.slice(0, 160)} ${failureSummary.slice(0, 300)}`));
}

const PHONE = { viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true };
const LOOKS = [["light", {}], ["dark", { colorScheme: "dark" }], ["phone", PHONE]];
const listed = (page) => until("rows", async () => (await rows(page)).length > 0);

const STATES = {
  "a list and a look-up": ["#stream=pages&item=%2Fcart", async (page) => {
    await listed(page);
    await page.locator(".found strong").waitFor();
    await page.locator("#lookup summary").click();
    // On a phone what can be chosen is folded away.
    if (await page.locator("#choose > summary").isVisible()) await page.locator("#choose > summary").click();
    await page.locator("#threshold").waitFor();
  }],
  "rows that may be noise": ["#stream=noisy&all=1", async (page) => {
    await listed(page);
    await page.locator(".row.unsure").first().waitFor();
  }],
  "a threshold": ["#stream=pages&at-least=0.1", listed],
  "nothing sealed": ["#stream=still", (page) => page.locator("#empty").waitFor()],
  "a problem": ["#stream=pages&window=5m", (page) => page.locator("#question-problem:not(:empty)").waitFor()],
  "no such stream": ["#stream=none", (page) => page.locator("#message").waitFor()],
  "a paused page": ["#stream=pages", async (page) => {
    await listed(page);
    await page.locator("#pause").click();
    await page.locator("#banner").waitFor();
  }],
  "administration": ["#view=admin", async (page) => {
    await page.locator("#admin summary", { hasText: "New source" }).click();
    await page.locator("#admin summary", { hasText: "New stream of web" }).click();
    await page.locator("#admin summary", { hasText: "Ledger" }).first().click();
  }],
  "a confirmation": ["#view=admin", async (page) => {
    await page.getByRole("button", { name: "Delete stream pages" }).click();
    await page.locator("dialog[open]").waitFor();
  }],
};

for (const [look, options] of LOOKS) {
  test(`axe-core finds nothing, ${look}`, async () => {
    for (const [name, [hash, ready]] of Object.entries(STATES)) {
      const page = await visit(browser, { reducedMotion: "reduce", ...options });
      await enter(page, service, hash);
      await ready(page);
      await sleep(100);
      assert.deepEqual(await faults(page), [], name);
      const wide = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
      assert.ok(wide[0] <= wide[1], `${name} scrolls sideways: ${wide}`);
      assert.deepEqual(page.faults, [], name);
      await page.context().close();
    }
    const page = await visit(browser, options);
    await page.goto(service.address);
    await page.locator("#token").waitFor();
    assert.deepEqual(await faults(page), [], "no token");
    await page.context().close();
  });
}

test("axe-core would find something", async () => {
  const page = await visit(browser);
  await enter(page, service, "#stream=pages");
  await listed(page);
  await page.evaluate(() => (document.getElementById("about").style.color = "#bbb"));
  assert.match((await faults(page)).join("\n"), /color-contrast/);
  await page.context().close();
});

test("everything can be reached and used by keyboard alone", async () => {
  const page = await visit(browser);
  await enter(page, service, "#stream=pages");
  await listed(page);
  const reached = new Set();
  for (let step = 0; step < 40; step += 1) {
    await page.keyboard.press("Tab");
    const at = await page.evaluate(() => {
      const { id, className, name } = document.activeElement;
      const style = getComputedStyle(document.activeElement.matches(".choice input") ? document.activeElement.nextSibling : document.activeElement, document.activeElement.matches(".item") ? "::after" : null);
      return { name: id || name || className, ring: style.outlineStyle };
    });
    if (at.name) assert.notEqual(at.ring, "none", `${at.name} shows that it has the focus`);
    reached.add(at.name);
  }
  for (const name of ["skip", "stream", "to-live", "to-admin", "pause", "theme", "leave", "export-csv", "windows-choice", "window", "counts-choice", "threshold", "item", "lookup-item"]) {
    assert.ok(reached.has(name), `${name} in ${[...reached]}`);
  }
  await page.locator(".rows .item").nth(1).focus();
  await page.keyboard.press("Enter");
  await page.locator(".found-name", { hasText: "/cart" }).waitFor();
  await page.context().close();
});

test("on a phone the bar at the top takes no more than two lines", async () => {
  const page = await visit(browser, { viewport: { width: 375, height: 812 }, isMobile: true, hasTouch: true });
  await enter(page, service, "#stream=pages");
  await listed(page);
  const tops = await page.$$eval(".bar > :not([hidden])", (all) => all.filter((one) => one.offsetHeight && !one.matches(".skip, .gap")).map((one) => one.offsetTop + one.offsetHeight / 2));
  const lines = new Set(tops.map((top) => Math.round(top / 20)));
  assert.ok(lines.size <= 2, `${tops}`);
  await page.context().close();
});

test("the focus stays with an item that changes its place", async () => {
  const own = await Service.start(settings(stream("pages", 1000, ["/", "/cart"])));
  await own.send(["/", "/", "/cart"], 1000);
  const page = await visit(browser);
  await enter(page, own);
  await until("two rows", async () => (await rows(page)).length === 2);
  await page.locator(".rows .item", { hasText: "/cart" }).focus();
  await own.send(["/cart"], 3000);
  await until("another order", async () => (await rows(page))[0]?.name === "/cart");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "/cart");
  await page.context().close();
  await own.end();
});

test("what was opened and focused in a look-up stays while its numbers change", async () => {
  const own = await Service.start(settings(stream("pages", 1000, ["/", "/cart"])));
  await own.send(["/", "/", "/cart"], 1000);
  const page = await visit(browser);
  await enter(page, own, "#item=%2Fcart");
  const estimate = page.locator(".found strong");
  await estimate.waitFor();
  const before = await estimate.textContent();
  await page.locator("#lookup summary").click();
  await own.send(["/cart"], 3000);
  await until("other numbers", async () => (await estimate.textContent()) !== before);
  assert.ok(await page.locator("#lookup details").evaluate((details) => details.open && details.contains(document.activeElement)));
  await page.context().close();
  await own.end();
});

test("what may be noise differs from what is known also without colour", async () => {
  const page = await visit(browser);
  await enter(page, service, "#stream=noisy&all=1");
  await page.locator(".row.unsure").first().waitFor();
  const [sure, unsure] = await page.evaluate(() => [".rows .row:not(.unsure)", ".row.unsure"].map((name) => {
    const row = document.querySelector(name);
    return { image: getComputedStyle(row.querySelector(".fill")).backgroundImage, text: row.querySelector(".value").textContent };
  }));
  assert.ok(sure.image === "none" && unsure.image.includes("gradient"), JSON.stringify([sure, unsure]));
  assert.ok(!sure.text.includes("~") && unsure.text.includes("~"));
  await page.context().close();
});

test("dark and light are followed and can be chosen", async () => {
  const page = await visit(browser, { colorScheme: "dark" });
  await enter(page, service, "#stream=pages");
  await listed(page);
  const back = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const dark = await back();
  await page.emulateMedia({ colorScheme: "light" });
  const light = await back();
  assert.notEqual(dark, light);
  await page.locator("#theme").click();
  await until("dark again", async () => (await back()) === dark);
  assert.match(page.url(), /theme=dark/);
  await page.context().close();
});
