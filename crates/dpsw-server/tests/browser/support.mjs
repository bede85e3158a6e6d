// What the browser tests share: the real service, a real browser, and waiting for what should be there.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const ROOT = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../../../..");
const TARGET = path.resolve(process.env.CARGO_TARGET_DIR ?? path.join(ROOT, "target"));
/** Packages lie outside of the repository. */
const require = createRequire(path.join(TARGET, "browser", "package.json"));
const { chromium } = require("playwright-core");
export const AXE = await readFile(require.resolve("axe-core/axe.min.js"), "utf8");

const PROGRAMS = process.env.DPSW_PROGRAMS ?? path.join(TARGET, "debug");
/** How long a test waits for what should come at once, on a machine that does much else. */
export const PATIENCE_MS = Number(process.env.DPSW_PATIENCE_MS ?? 30_000);

/** Programs that run; none outlives this one. */
const running = new Set();
const folders = new Set();
process.on("exit", () => {
  endAll();
  folders.forEach((folder) => rmSync(folder, { recursive: true, force: true }));
});

function start(program, args) {
  const child = spawn(path.join(PROGRAMS, program), args, { stdio: ["pipe", "pipe", "ignore"] });
  running.add(child);
  child.on("exit", () => running.delete(child));
  return child;
}

/** Ends what a test that failed has left running. */
export const endAll = () => running.forEach((child) => child.kill("SIGKILL"));

export const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

/** Waits until a question has a truthy answer, and returns it. */
export async function until(what, question) {
  const end = Date.now() + PATIENCE_MS;
  for (;;) {
    const answer = await question();
    if (answer) return answer;
    if (end < Date.now()) throw new Error(`${what}: not in time`);
    await sleep(50);
  }
}

/** A source of events with a page, with so much budget that noise is next to nothing, and streams of it. */
export const settings = (...streams) => `
address = "127.0.0.1:0"
data = "data"
[limits]
key_len = 20000
[[source]]
name = "web"
protects = "event"
epsilon = 1000000.0
delta = 1e-6
columns = { page = "text" }
${streams.join("\n")}`;

/** With epsilon 1e5 every draw of noise is zero: the chance of another one is below e^-100000. */
export const stream = (name, window, keys, more = "") => `[[source.stream]]
name = "${name}"
item = "page"
window = ${window}
epsilon = 100000.0
keys = ${typeof keys === "string" ? JSON.stringify(keys) : `{ list = ${JSON.stringify(keys)} }`}
${more}`;

/** A running service. It ends with its standard input, so also when this process does. */
export class Service {
  static async start(toml, folder = null) {
    const service = new Service();
    service.folder = folder ?? (await mkdtemp(path.join(tmpdir(), "dpsw-browser-")));
    folders.add(service.folder);
    service.settings = path.join(service.folder, "dpsw.toml");
    await writeFile(service.settings, toml);
    await service.run();
    return service;
  }

  async run() {
    this.child = start("dpsw-server", ["--end-with-stdin", "--config", this.settings]);
    this.address = await said(this.child, /listens on (http:\/\/\S+)/);
    this.token = (await readFile(path.join(this.folder, "data/admin.token"), "utf8")).trim();
  }

  /** Ends the process and keeps its data. */
  async halt() {
    this.child.stdin.end();
    if (this.child.exitCode === null) await once(this.child, "exit");
  }

  /** The same as a crash. */
  async kill() {
    this.child.kill("SIGKILL");
    if (this.child.exitCode === null && this.child.signalCode === null) await once(this.child, "exit");
  }

  /** Starts again where it was before: same data, same address. */
  async again() {
    const toml = await readFile(this.settings, "utf8");
    await writeFile(this.settings, toml.replace(/address = ".*"/, `address = "${this.address.replace("http://", "")}"`));
    await this.run();
  }

  async end() {
    await this.halt();
    await rm(this.folder, { recursive: true });
  }

  async request(method, where, body, type = "application/json") {
    const headers = { Authorization: `Bearer ${this.token}`, ...(body === undefined ? {} : { "Content-Type": type }) };
    const reply = await fetch(this.address + where, { method, headers, body });
    const text = await reply.text();
    if (!reply.ok) throw new Error(`${method} ${where}: ${reply.status} ${text}`);
    return text === "" ? null : JSON.parse(text);
  }

  get(where) {
    return this.request("GET", where);
  }

  /** Sends items, each so often. */
  send(items, times = 1, source = "web") {
    const body = `${items.map((page) => JSON.stringify({ page })).join("\n")}\n`.repeat(times);
    return this.request("POST", `/v1/sources/${source}/events`, body, "application/x-ndjson");
  }

  /** Where a stream stands. */
  async position(stream) {
    return (await this.get(`/v1/streams/${stream}/top?count=1`)).window.end;
  }

  /** A token that may only ask. */
  async reader() {
    const made = await this.request("POST", "/v1/tokens", JSON.stringify({ name: "reader", grant: { roles: ["query"] } }));
    return made.token;
  }
}

/** The demo, and the address that it tells people to open. */
export class Demo {
  static async start() {
    const demo = new Demo();
    demo.child = start("dpsw", ["demo", "--serve"]);
    demo.open = await said(demo.child, /(http:\/\/\S+#\S*token=\S+)/);
    return demo;
  }

  async end() {
    this.child.kill("SIGINT");
    if (this.child.exitCode === null) await once(this.child, "exit");
  }
}

/** What a program says that matches. */
async function said(child, pattern) {
  for await (const line of createInterface({ input: child.stdout })) {
    const found = pattern.exec(line);
    if (found) {
      // Whatever else it says is read, so that it never waits for room.
      child.stdout.resume();
      return found[1];
    }
  }
  throw new Error(`the program ended and never said ${pattern}`);
}

const FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run"];

export const launch = (more = []) =>
  chromium.launch({ executablePath: process.env.DPSW_CHROMIUM ?? "/usr/bin/chromium", args: [...FLAGS, ...more] });

/** A page of its own, which fails the test if anything in it fails or anything but the service is asked. */
export async function visit(browser, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, acceptDownloads: true, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  page.faults = [];
  page.on("pageerror", (error) => page.faults.push(`${error}`));
  page.on("dialog", (dialog) => {
    page.faults.push(`a dialog: ${dialog.message()}`);
    return dialog.dismiss();
  });
  page.on("console", (message) => {
    // A reply with another status than 200 is logged by the browser; tests of such replies look at the page.
    if (message.type() === "error" && !/Failed to load resource|ERR_CONNECTION/.test(message.text())) page.faults.push(message.text());
  });
  return page;
}

/** Opens the dashboard with a token, as somebody who has entered it before. */
export async function enter(page, service, hash = "", token = service.token) {
  await page.addInitScript((text) => sessionStorage.getItem("dpsw-token") ?? sessionStorage.setItem("dpsw-token", text), token);
  await page.goto(`${service.address}/${hash}`);
}

/** The rows that are in the page: rank, name, estimate, interval, share. */
export const rows = (page) =>
  page.$$eval(".rows .row", (all) =>
    all.map((row) => {
      const text = (name) => row.querySelector(`.${name}`).textContent;
      return { rank: text("rank"), name: text("item"), value: text("value"), interval: text("interval"), share: text("share"), trend: text("trend"), unsure: row.classList.contains("unsure") };
    }));
