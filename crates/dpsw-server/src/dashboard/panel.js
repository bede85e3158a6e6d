// The live view: what the window is, how fresh and complete it is, what can be chosen, and why a list is empty.

import { now, Refused } from "./api.js";
import { byId, choices, el, fill, say, show } from "./dom.js";
import { COUNTS, LEAST_SHARE, MOST_SHARE } from "./place.js";
import { ago, count, lasting, millis, moment, parameter, percent, sentence, span, written } from "./words.js";

/** What the list answers: until there is an answer to a new question, the one before. */
const askedOf = ({ place, shown }) => shown?.asked ?? place;

/** The window of the list: a number of items or a time, as the service writes it. */
function windowOf(state) {
  const { window } = askedOf(state);
  return window === null ? state.stream.window : /^\d+$/.test(window) ? Number(window) : window;
}

export function drawPanel(state, go) {
  const { stream, problem, connection, isPaused, shown } = state;
  say(byId("title"), stream.name);
  say(byId("about"), about(state));
  byId("live").classList.toggle("old", isPaused || problem !== null || connection.name === "lost");
  drawControls(state, go);
  drawTime(state);
  drawList(state);
  say(byId("question-problem"), problem ? `${sentence(problem.message)}${shown?.answer.items.length ? " The list is the one before." : ""}` : "");
}

function about(state) {
  const { stream } = state;
  const window = windowOf(state);
  const last = typeof window === "number" || millis(window) !== null ? ` in the last ${span(window)}` : "";
  if (stream.source === null) return `The most frequent items${last}, sealed elsewhere`;
  return `The most frequent values of ${stream.item}${last}, from source ${stream.source}`;
}

/** What changes with the time alone. */
export function drawTime(state) {
  drawBanner(state);
  drawFacts(state);
  drawPredicted(state);
}

function drawBanner({ shown, connection, isPaused }) {
  const banner = byId("banner");
  const isLost = connection.name === "lost" && !isPaused;
  show(banner, isLost || isPaused);
  const seen = shown ? ` What you see is from ${moment(shown.at, now())}.` : "";
  if (isPaused) say(banner, `Paused.${seen}`);
  else if (isLost) say(banner, `${lostWords(connection.error)}${seen} This page goes on trying.`);
}

const lostWords = (error) => (error instanceof Refused ? `The service says: ${error.message}.` : "The connection is lost.");

function drawFacts(state) {
  const facts = state.shown ? factsOf(state) : [["Window", span(state.stream.window), "nothing is known yet"]];
  const said = JSON.stringify(facts);
  const list = byId("facts");
  if (list.dataset.said === said) return;
  list.dataset.said = said;
  fill(list, ...facts.map(([name, value, more]) =>
    el("div", { class: "fact" }, el("dt", {}, name), el("dd", {}, el("strong", {}, value), el("span", { class: "note" }, more)))));
}

function factsOf(state) {
  const { capped, window } = state.shown.answer;
  const facts = [windowFact(state), sealedFact(state), freshFact(state), privacyFact(state)];
  if (window.unit === "ms") facts.splice(1, 0, itemsFact(state));
  if (capped) facts.push(["Not counted", count(capped), "items beyond the caps of users"]);
  return facts;
}

/** How many items a window of time has: known where it is sealed, predicted from that where it is not. */
function itemsFact({ shown: { answer: { total, protects, window, covered } } }) {
  if (protects === "presence") return ["Items", "private", "how many came is hidden"];
  if (total === null) return ["Items", "–", "none is sealed"];
  return covered.end < window.end ? ["Items", `≈ ${count(total)}`, "partly predicted"] : ["Items", count(total), "in the window"];
}

function privacyFact({ shown: { answer: { epsilon, delta, protects } } }) {
  if (epsilon === null) return ["Privacy", "none", "nothing is promised"];
  return ["Privacy", `ε ${parameter(epsilon)}`, `δ ${parameter(delta)}, for ${protects === "users" ? "a user in a window" : "one event"}`];
}

const sized = (unit, amount) => (unit === "items" ? `${count(amount)} items` : lasting(amount));

function windowFact(state) {
  const { window } = state.shown.answer;
  const len = window.end - window.start;
  const asked = windowOf(state);
  const whole = typeof asked === "number" ? asked : millis(asked);
  const isFull = whole === null || whole <= len;
  const end = window.unit === "items" ? `up to item ${count(window.end)}` : `up to ${moment(window.end, now())}`;
  return ["Window", sized(window.unit, len), isFull ? end : `${Math.floor((100 * len) / whole)} % of ${typeof asked === "number" ? count(asked) : asked} so far`];
}

/** The share of the window that sealed sketches cover, from 0 to 1; the rest is predicted, or not there yet. */
function sealedShare({ window, covered }) {
  const len = window.end - window.start;
  return len ? Math.max(0, covered.end - covered.start) / len : 0;
}

const wholePercent = (share) => `${Math.floor(100 * share)} %`;

function sealedFact({ shown: { answer } }) {
  const { window, covered } = answer;
  const open = window.end - covered.end;
  const rest = covered.end <= covered.start ? "none of it yet" : open <= 0 ? "up to its end" : `the newest ${sized(window.unit, open)} not yet`;
  return ["Sealed", window.start < window.end ? wholePercent(sealedShare(answer)) : "–", rest];
}

/** Where most of the window is predicted, the numbers rest on little. */
function drawPredicted({ shown }) {
  const share = shown ? sealedShare(shown.answer) : 0;
  const isMost = 0 < share && share < 0.5 && 0 < shown.answer.items.length;
  show(byId("predicted"), isMost);
  if (isMost) say(byId("predicted"), `Only ${wholePercent(share)} of this window is sealed. The rest is predicted from that, as if items went on coming the same way: a burst makes it wrong.`);
}

function freshFact({ shown: { answer: { window } }, changedAt }) {
  if (window.unit === "ms") {
    const behind = Math.max(0, Math.floor((now() - window.end) / 1000));
    return ["Behind", behind ? lasting(1000 * behind) : "0 s", "from its end to now"];
  }
  return changedAt
    ? ["Changed", ago(now() - changedAt), `at ${moment(changedAt, now())}`]
    : ["Changed", "–", "not since this page was opened"];
}

// What can be chosen

function drawControls(state, go) {
  const { place, stream, shown } = state;
  const isTimed = typeof stream.window === "string";
  const whole = isTimed ? millis(stream.window) : stream.window;
  const lens = [...new Set([1, 2, 4, 10].map((part) => Math.floor(whole / part)).filter((len) => 1 <= len))];
  const value = (len) => (len === whole ? "" : isTimed ? written(len) : String(len));
  const windows = lens.map((len) => ({ value: value(len), label: isTimed ? written(len) : count(len) }));
  drawChoices("windows", windows, place.window ?? "", (window) => go({ window: window || null }));
  const isOther = !windows.some(({ value }) => value === (place.window ?? ""));
  if (document.activeElement !== byId("window")) byId("window").value = isOther ? place.window : "";
  byId("window").placeholder = isTimed ? "45s" : "items";
  const counts = COUNTS.map((rows) => ({ value: String(rows), label: count(rows) }));
  drawChoices("counts", counts, place.share === null ? String(place.count) : null, (rows) => go({ count: Number(rows), share: null }));
  drawThreshold(place.share);
  for (const id of ["export-csv", "export-json", "export-svg"]) byId(id).disabled = !shown;
}

function drawChoices(id, options, chosen, onchoice) {
  const box = byId(id);
  const said = JSON.stringify(options);
  if (box.dataset.said !== said) {
    box.dataset.said = said;
    fill(box, ...choices(`${id}-choice`, options, chosen, onchoice));
  }
  for (const radio of box.querySelectorAll("input")) radio.checked = radio.value === chosen;
}

function drawThreshold(share) {
  if (document.activeElement !== byId("threshold")) byId("threshold").value = slid(share ?? 0.01);
  sayThreshold(share);
}

export function sayThreshold(share) {
  const slider = byId("threshold");
  const words = share === null ? "off" : percent(share);
  say(byId("threshold-says"), words);
  slider.setAttribute("aria-valuetext", words);
  slider.classList.toggle("off", share === null);
}

/** Shares on the slider, in equal factors; two figures of each. */
const slid = (share) => Math.round((100 * Math.log(share / LEAST_SHARE)) / Math.log(MOST_SHARE / LEAST_SHARE));
export const shareAt = (at) => Number((LEAST_SHARE * (MOST_SHARE / LEAST_SHARE) ** (at / 100)).toPrecision(2));

// What is listed

function drawList(state) {
  const rows = state.shown?.answer.items.length ?? 0;
  show(byId("bars"), rows > 0);
  const reason = rows ? "" : emptiness(state);
  show(byId("empty"), reason !== "");
  say(byId("empty"), reason);
  drawLegend(state, rows);
}

/** Why nothing is listed. */
function emptiness({ shown, problem, stream }) {
  if (stream.keys === "asked") return "The keys of this stream are not listed: its settings say that whoever asks names them. Look an item up.";
  if (!shown) return problem ? "" : "Waiting for the first answer …";
  const { asked, answer: { covered } } = shown;
  if (covered.end <= covered.start && asked.window === null) {
    const { substream_len: len } = stream.plan;
    return `Nothing is sealed yet. Something new can be seen after every ${typeof stream.window === "string" ? lasting(len) : `${count(len)} items`}.`;
  }
  if (asked.share !== null) return "No item reaches this share.";
  return stream.keys === "found" ? "No key was found yet. Frequent ones come out after a while; the plan of the stream says how soon." : "No item stands out from the noise.";
}

function drawLegend({ shown, place }, rows) {
  show(byId("line-key"), (shown?.asked.share ?? null) !== null && shown.answer.total !== null);
  const isSealed = shown !== null && shown.answer.covered.start < shown.answer.covered.end;
  const hidden = isSealed ? shown.answer.hidden : 0;
  show(byId("keys"), rows > 0);
  show(byId("all"), hidden > 0 || place.all);
  show(byId("legend"), rows > 0 || hidden > 0 || place.all);
  say(byId("all"), place.all ? "Hide rows that may be noise alone" : `Show ${count(hidden)} ${hidden === 1 ? "row" : "rows"} that may be noise alone`);
}
