// The page: reads where it is from the address, follows the stream, and draws at most once per frame.

import { showAdmin } from "./admin.js";
import { ask, hasToken, now, params, parse, Refused, setToken, streamPath, text } from "./api.js";
import { Bars } from "./bars.js";
import { showContract } from "./contract.js";
import { byId, perFrame, say } from "./dom.js";
import { csv, download, drawing } from "./export.js";
import { drawFooter, drawFrame, wear } from "./frame.js";
import { events, Follower, newestOnly, polled } from "./live.js";
import { LookUp } from "./lookup.js";
import { drawPanel, drawTime, sayThreshold, shareAt } from "./panel.js";
import { nextTheme, read, takeToken, write } from "./place.js";

/** How often what rarely changes is asked for again. */
const UPKEEP_MS = 20_000;
/** Streams that cannot be listed are asked about this often. */
const POLL_MS = 3000;
/** Trends of so many rows are worked out. */
const TREND_ROWS = 100;
const ENTER_AGAIN_MS = 2000;
/** Reading an answer of more characters takes a good part of a frame, and nobody reads such a list ten times a second. */
const LONG = 200_000;
/** A long answer to the same question is read this long after the one before, at the earliest. */
const LONG_PAUSE_MS = 500;
/** A slider that moves is followed when it rests. */
const REST_MS = 150;

const state = {
  place: read(location.hash),
  /** What the token may do; `null` before somebody is in. */
  grant: null,
  streams: [],
  /** The stream of the place, if there is one. */
  get stream() {
    return this.streams.find(({ name }) => name === this.place.stream) ?? null;
  },
  /** The newest answer: to what, as it came, as it was read, and when. Only the newest is kept. */
  shown: null,
  problem: null,
  connection: { name: "waiting" },
  isPaused: false,
  isReady: null,
  /** When the end of the window was seen to move. */
  changedAt: 0,
};
/** An answer that is not drawn yet. */
let unread = null;
/** When an answer was read, and when a long one will be. */
let readAt = 0;
let readLater = null;
/** Where the window ended when it was last seen; forgotten when the connection is lost. */
let lastEnd = null;
let follower = null;
let enterLater = null;
let shareLater = null;
/** The version of the service whose files these are. */
let version = null;

const bars = new Bars(byId("bars"), (row) => choose(row));
const lookUp = new LookUp(byId("lookup"), byId("lookup-hint"));

// Where the page is

function go(change, isStep = true) {
  const next = { ...state.place, ...change };
  const address = write(next);
  if (address === write(state.place)) return;
  history[isStep ? "pushState" : "replaceState"](null, "", address);
  arrive(next);
}

/** Shows a place, asking again only for what is another question. */
function arrive(next) {
  const old = state.place;
  state.place = next;
  wear(next.theme);
  const differs = (...names) => names.some((name) => old[name] !== next[name]);
  if (differs("view", "stream")) meet();
  else if (differs("window", "count", "share", "all")) follow();
  if (differs("view", "stream", "window", "item", "base64")) seek();
  draw();
}

/** Shows another stream or view, from the beginning. */
function meet() {
  [state.shown, unread, state.changedAt] = [null, null, 0];
  byId("contract").replaceChildren();
  follow();
  if (state.place.view === "admin" && state.grant) openAdmin();
  else quietly(refreshContract);
}

const openAdmin = () => showAdmin(byId("admin"), { onchange: () => quietly(refresh), onstream: (name) => go({ view: "live", stream: name, window: null, item: null, base64: null }) });

// Coming in

async function enter() {
  clearTimeout(enterLater);
  if (!hasToken()) return leave("");
  try {
    state.grant = await ask("v1/token");
    await refresh();
    meet();
    seek();
  } catch (error) {
    state.grant = null;
    if (isUnknown(error)) return leave("The service does not know this token. Is it whole, and of this service?");
    state.connection = { name: "lost", error };
    enterLater = setTimeout(enter, ENTER_AGAIN_MS);
  }
  draw();
}

const isUnknown = (error) => error instanceof Refused && error.status === 401;

function leave(why) {
  follower?.stop();
  follower = null;
  setToken(null);
  [state.grant, state.shown, unread, state.problem, state.streams] = [null, null, null, null, []];
  lookUp.seek(null);
  byId("token").value = "";
  byId("admin").replaceChildren();
  byId("contract").replaceChildren();
  say(byId("token-problem"), why);
  draw();
  requestAnimationFrame(() => byId("token").focus());
}

// What rarely changes

async function refresh() {
  state.streams = (await ask("v1/streams")).streams;
  if (state.place.stream === null && state.streams.length) {
    const first = state.streams.find(({ keys }) => keys !== "asked") ?? state.streams[0];
    state.place = { ...state.place, stream: first.name };
    history.replaceState(null, "", write(state.place));
  }
  await Promise.all([refreshContract(), refreshHealth()]);
}

async function refreshContract() {
  const { place, stream } = state;
  if (place.view !== "live" || !stream) return;
  const contract = await ask(streamPath(stream.name, "/privacy"));
  if (stream.name === state.place.stream) showContract(byId("contract"), contract);
}

async function refreshHealth() {
  const said = async (path) => (await fetch(path, { cache: "no-store" })).json();
  try {
    state.isReady = (await said("readyz")).ready;
    const now = (await said("version")).version;
    // A page that is left open takes the files of the new service.
    if (version !== null && version !== now) location.reload();
    version = now;
  } catch {
    state.isReady = null;
  }
}

/** Asks for something that can wait: if it fails, what is shown stays. */
async function quietly(question) {
  if (!state.grant) return;
  const before = state.stream;
  try {
    await question();
  } catch (error) {
    if (isUnknown(error)) return leave("The token is no longer known.");
  }
  // A stream that came back is followed again.
  if (!before && state.stream) meet();
  draw();
}

// Following

/** Follows what the place names. What is shown stays until there is an answer. */
function follow() {
  follower?.stop();
  follower = null;
  state.problem = null;
  lastEnd = null;
  if (!state.grant || state.isPaused || state.place.view !== "live" || !state.stream) return;
  state.connection = { name: "waiting" };
  const mine = new Follower(round(), (connection) => {
    if (follower === mine) hear(connection);
  });
  follower = mine;
}

function hear(connection) {
  const { error } = connection;
  // Every part of an answer is a sign of life.
  if (connection.name === "live" && state.connection.name === "live") return;
  if (connection.name === "lost") lastEnd = null;
  if (connection.name === "live" && state.connection.name === "lost") quietly(refresh);
  state.connection = connection;
  if (connection.name !== "live") state.problem = connection.name === "refused" ? error : null;
  if (isUnknown(error)) return leave("The token is no longer known.");
  if (error instanceof Refused && error.code === "unknown-stream") quietly(refresh);
  draw();
}

/** How the place is followed: as a list, as what reaches a share, or, where nothing can be listed, by asking again. */
function round() {
  const { place, stream } = state;
  const { window, count, share, all } = place;
  const take = (answer) => keep(place, answer);
  if (stream.keys === "asked") return polled(async (signal) => take(await windowAlone(stream, window, signal)), POLL_MS);
  const live = (asked) => streamPath(stream.name, "/live") + params({ window, ...asked });
  if (share === null) return events(live({ count, all, trend: count <= TREND_ROWS }), take);
  const hits = streamPath(stream.name, "/heavy-hitters") + params({ window, all, threshold: share, trend: true });
  return (signal, alive) => events(live({ count: 1 }), newestOnly(() => text(hits, { signal }), take, refuse))(signal, alive);
}

/** What is known of a stream that lists nothing: its window, which comes with an answer about any item. */
async function windowAlone(stream, window, signal) {
  const items = [stream.kind === "integer" ? 0 : ""];
  const answer = await ask(streamPath(stream.name, "/frequencies") + params({ window }), { method: "POST", body: { items }, signal });
  return JSON.stringify({ ...answer, items: [] });
}

function refuse(error) {
  if (error.name === "AbortError") return;
  state.problem = error;
  draw();
}

/** Keeps the newest answer to what was asked at a place until the next frame. */
function keep(asked, text) {
  unread = { asked, text };
  state.problem = null;
  draw();
  lookUp.again();
}

// Looking up

const soughtItem = ({ item, base64 }) => (base64 === null ? item : { base64 });
const soughtKey = ({ item, base64 }) => (base64 !== null ? `b${base64}` : item !== null ? `t${item}` : null);

/** Looks up what the place names. */
function seek() {
  const { place, grant, stream } = state;
  byId("lookup-item").value = place.item ?? "";
  const isSought = grant && stream && soughtKey(place) !== null && place.view === "live";
  lookUp.seek(isSought ? { stream: stream.name, window: place.window, item: soughtItem(place) } : null);
}

function choose(row) {
  const base64 = row.item_base64 ?? null;
  go({ item: base64 === null ? String(row.item) : null, base64 });
  if (innerWidth <= 1150) byId("lookup-title").scrollIntoView({ block: "start" });
}

// Drawing

const draw = perFrame(() => {
  if (unread !== null && isDue()) openAnswer();
  else bars.choose(soughtKey(state.place));
  drawFrame(state, { go, retry: enter });
  if (state.place.view === "live" && state.stream) drawPanel(state, go);
  drawFooter(state);
});

/** Whether the newest answer is to be read now; else it is later. */
function isDue() {
  if (unread.text.length < LONG || unread.asked !== state.shown?.asked) return true;
  const early = LONG_PAUSE_MS - (performance.now() - readAt);
  clearTimeout(readLater);
  if (0 < early) readLater = setTimeout(draw, early);
  return early <= 0;
}

function openAnswer() {
  readAt = performance.now();
  const { asked, text } = unread;
  const answer = parse(text);
  state.shown = { asked, answer, text, at: now() };
  unread = null;
  if (lastEnd !== null && lastEnd !== answer.window.end) state.changedAt = now();
  lastEnd = answer.window.end;
  const { share } = asked;
  const line = share === null || answer.total === null ? null : share * answer.total;
  bars.show(answer.items, { line, chosen: soughtKey(state.place) });
}

/** What time does to the page. */
function tick() {
  if (document.hidden || !state.grant || state.place.view !== "live" || !state.stream) return;
  drawTime(state);
}

// Hands

const on = (id, event, act) => byId(id).addEventListener(event, act);
const instead = (act) => (event) => {
  event.preventDefault();
  act();
};

on("token-form", "submit", instead(() => {
  setToken(byId("token").value.trim());
  say(byId("token-problem"), "");
  enter();
}));
on("leave", "click", () => {
  // Whoever comes next is not shown what was asked before.
  state.place = read(write({ ...read(""), theme: state.place.theme }));
  history.replaceState(null, "", write(state.place));
  leave("");
  byId("lookup-item").value = "";
});
on("pause", "click", () => {
  state.isPaused = !state.isPaused;
  if (state.isPaused) lookUp.rest();
  follow();
  draw();
});
on("theme", "click", () => go({ theme: nextTheme(state.place.theme) }, false));
on("stream", "change", () => go({ stream: byId("stream").value, window: null, item: null, base64: null }));
on("controls", "submit", instead(() => {}));
on("window", "change", () => go({ window: byId("window").value.trim() || null }));
on("threshold", "input", () => {
  const share = shareAt(Number(byId("threshold").value));
  clearTimeout(shareLater);
  shareLater = setTimeout(() => go({ share }, false), REST_MS);
  sayThreshold(share);
});
on("lookup-form", "submit", instead(() => go({ item: byId("lookup-item").value, base64: null })));
on("all", "click", () => go({ all: !state.place.all }));
on("skip", "click", instead(() => byId("main").focus()));
on("to-live", "click", instead(() => go({ view: "live" })));
on("to-admin", "click", instead(() => go({ view: "admin" })));
const named = (ending) => `${state.place.stream}-${state.shown.answer.window.end}.${ending}`;
on("export-csv", "click", () => download(named("csv"), "text/csv;charset=utf-8", csv(state.shown.answer)));
on("export-json", "click", () => download(named("json"), "application/json", `${state.shown.text}\n`));
on("export-svg", "click", () => download(named("svg"), "image/svg+xml", drawing(state.place.stream, state.shown.answer)));
addEventListener("popstate", () => arrive(read(location.hash)));
addEventListener("online", () => follower?.hurry());
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) follower?.hurry();
});

// On a phone the list comes first, and what can be chosen when it is asked for.
if (matchMedia("(max-width: 640px)").matches) byId("choose").open = false;
setInterval(tick, 1000);
setInterval(() => {
  if (!document.hidden && state.connection.name !== "lost") quietly(refresh);
}, UPKEEP_MS);
const given = takeToken();
if (given !== null) setToken(given);
state.place = read(location.hash);
wear(state.place.theme);
enter();
