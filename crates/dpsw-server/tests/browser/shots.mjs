// Pictures of the dashboard with the demo, all or one of them, after ./test has installed what it needs:
//   node crates/dpsw-server/tests/browser/shots.mjs FOLDER [NAME]
// README shows the one called `dashboard`.

import { mkdir } from "node:fs/promises";
import path from "node:path";
import { Demo, Service, launch, settings, sleep, stream, until, visit } from "./support.mjs";

const [folder = "target/shots", only] = process.argv.slice(2);
await mkdir(folder, { recursive: true });
const browser = await launch();
const demo = await Demo.start();

async function shot(name, hash, options, act = async () => {}) {
  if (only && only !== name) return;
  const page = await visit(browser, options);
  const [address, token] = [demo.open.split("#")[0], /token=\S+/.exec(demo.open)[0]];
  await page.goto(`${options.address ?? address}#${options.token ?? token}${hash ? `&${hash}` : ""}`);
  await act(page);
  await sleep(900);
  await page.screenshot({ path: path.join(folder, `${name}.png`), fullPage: options.fullPage ?? false });
  if (page.faults.length) console.error(name, page.faults);
  await page.context().close();
}

const listed = (page) => until("rows", async () => 4 <= (await page.locator(".rows .row").count()));
const wide = { viewport: { width: 1440, height: 900 } };
const phone = { viewport: { width: 375, height: 812 }, deviceScaleFactor: 2, isMobile: true, hasTouch: true };
// Pages rise and fall in turns: when the window is full, trends show.
await sleep(Number(process.env.DPSW_SHOT_AFTER_MS ?? 80_000));

await shot("dashboard", "stream=minute&count=20&item=/summer-sale", { viewport: { width: 1440, height: 960 }, colorScheme: "light" }, listed);
await shot("dark", "stream=minute&count=20&item=/summer-sale", { ...wide, colorScheme: "dark" }, listed);
await shot("items", "stream=pages&count=20&item=/live-stream", { ...wide, colorScheme: "light" }, listed);
await shot("noise", "stream=pages&count=1000&all=1", { ...wide, colorScheme: "light" }, async (page) => {
  await listed(page);
  await page.evaluate(() => scrollTo(0, document.documentElement.scrollHeight));
});
await shot("threshold", "stream=minute&at-least=0.02", { ...wide, colorScheme: "light" }, listed);
const wall = { viewport: { width: 1920, height: 1080 } };
await shot("wall", "stream=minute", { ...wall, colorScheme: "dark" }, listed);
await shot("wall-light", "stream=pages&item=/live-stream", { ...wall, colorScheme: "light" }, listed);
await shot("short", "stream=minute&window=7s&count=20&item=/cart", { ...wide, colorScheme: "light" }, listed);
await shot("words", "stream=minute", { ...wall, colorScheme: "light", fullPage: true }, async (page) => {
  await listed(page);
  await page.locator("#glossary summary").click();
});
await shot("problem", "stream=pages", { ...wide, colorScheme: "light" }, async (page) => {
  await listed(page);
  await page.locator("#window").fill("5m");
  await page.locator("#window").press("Enter");
  await page.locator("#question-problem:not(:empty)").waitFor();
});
await shot("paused", "stream=pages&item=/cart", { ...wide, colorScheme: "dark" }, async (page) => {
  await listed(page);
  await page.locator(".history").waitFor();
  await page.locator("#pause").click();
});
await shot("no-such-stream", "stream=none", { ...wide, colorScheme: "light" }, (page) => page.locator("#message").waitFor());
await shot("phone", "stream=minute&item=/summer-sale", { ...phone, colorScheme: "light" }, listed);
await shot("phone-whole", "stream=minute&item=/summer-sale", { ...phone, colorScheme: "dark", fullPage: true }, listed);
await shot("tablet", "stream=minute&item=/summer-sale", { viewport: { width: 900, height: 1100 }, colorScheme: "light" }, listed);
await shot("admin", "view=admin", { ...wide, colorScheme: "light", fullPage: true }, (page) => page.locator("#admin .card").first().waitFor());
await shot("admin-open", "view=admin", { ...wide, colorScheme: "light", fullPage: true }, async (page) => {
  await page.locator("#admin .card").first().waitFor();
  for (const summary of await page.locator("#admin summary").all()) await summary.click();
  await page.evaluate(() => scrollTo(0, 0));
});
await shot("admin-dark-phone", "view=admin", { ...phone, colorScheme: "dark", fullPage: true }, (page) => page.locator("#admin .card").first().waitFor());
await shot("token", "", { ...wide, token: "token=dpsw_wrong", colorScheme: "light" }, (page) => page.locator("#token-problem:not(:empty)").waitFor());
await shot("lost", "stream=minute&count=20", { ...wide, colorScheme: "light" }, async (page) => {
  await listed(page);
  await page.context().setOffline(true);
  await page.route("**/*", (route) => route.abort());
  await page.locator("#pause").click();
  await page.locator("#pause").click();
  await page.locator("#banner").waitFor();
});
await demo.end();

if (!only || only === "empty") {
  const service = await Service.start(settings(stream("pages", 10_000, ["/", "/cart"])));
  const given = { ...wide, address: `${service.address}/`, token: `token=${service.token}`, colorScheme: "light" };
  await shot("empty", "", given, (page) => page.locator("#empty").waitFor());
  await service.request("DELETE", "/v1/streams/pages");
  await shot("no-streams", "", given, (page) => page.locator("#message").waitFor());
  await service.end();
}
await browser.close();
