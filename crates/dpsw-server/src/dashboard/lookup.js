// One item: how often it occurred, and its history.

import { ask, params, Refused, streamPath } from "./api.js";
import { keyOf, nameOf } from "./bars.js";
import { el, fill, perFrame, say, show } from "./dom.js";
import { History } from "./history.js";
import { count, interval, percent, sentence } from "./words.js";

/** It is asked for at most this often. */
const PAUSE_MS = 500;
/** Names are shown up to here, which is more than the service keeps by default. */
const NAME_LEN = 20_000;
const WORDS = { rising: "▲ rising", falling: "▼ falling", steady: "▬ steady" };

/** Looks an item up, again whenever it is told that something changed. */
export class LookUp {
  #place;
  #hint;
  #question = null;
  #found = null;
  #running = null;
  #askedAt = 0;
  #later = null;
  #draw = perFrame(() => this.#show());
  #problem = el("p", { class: "problem", role: "alert" });
  #name = el("p", { class: "found-name", tabindex: 0, role: "region", "aria-label": "The whole name" });
  #estimate = el("strong");
  #interval = el("span");
  #facts = el("p", { class: "note" });
  #strict = el("p", { class: "note" });
  #history = new History();
  #answer = el("div", { class: "answer" }, this.#name, el("p", { class: "found" }, this.#estimate, this.#interval), this.#facts, this.#history.element, this.#strict);

  constructor(place, hint) {
    this.#place = place;
    this.#hint = hint;
    fill(place, this.#problem, this.#answer);
  }

  /** Looks for an item of a stream in a window; `null` for none. */
  seek(question) {
    this.#running?.abort();
    [this.#question, this.#found, this.#running, this.#askedAt] = [question, null, null, -PAUSE_MS];
    this.again();
    this.#draw();
  }

  /** Asks again, unless it was asked just now: then in a moment. */
  again() {
    clearTimeout(this.#later);
    if (this.#question === null) return;
    const early = PAUSE_MS - (performance.now() - this.#askedAt);
    if (this.#running || 0 < early) this.#later = setTimeout(() => this.again(), Math.max(early, 50));
    else this.#ask();
  }

  /** Asks no more until it is told to. */
  rest() {
    clearTimeout(this.#later);
  }

  async #ask() {
    const mine = new AbortController();
    [this.#running, this.#askedAt] = [mine, performance.now()];
    try {
      const found = await answerTo(this.#question, mine.signal);
      if (!mine.signal.aborted) this.#found = found;
    } catch (error) {
      // What was known stays while the service cannot be reached.
      if (error instanceof Refused && !mine.signal.aborted) this.#found = { error };
    }
    if (this.#running === mine) this.#running = null;
    this.#draw();
  }

  #show() {
    const { error = null, row = null, past } = this.#found ?? {};
    show(this.#hint, this.#question === null);
    show(this.#place, this.#found !== null);
    say(this.#problem, error ? sentence(error.message) : "");
    show(this.#answer, row !== null);
    if (row !== null) this.#write(row, past.substreams);
  }

  #write(row, substreams) {
    const key = keyOf(row);
    if (this.#name.dataset.key !== key) {
      this.#name.dataset.key = key;
      fill(this.#name, nameOf(row.item, NAME_LEN));
    }
    const share = row.share === null ? null : `${percent(row.share)} of the window`;
    say(this.#estimate, count(row.estimate));
    say(this.#interval, ` ${interval(row.lower, row.upper)} with 95 %`);
    say(this.#facts, [share, WORDS[row.trend] ?? null].filter((fact) => fact !== null).join(" · "));
    say(this.#strict, `${evenness(row.any_order)} Rows of a list are corrected for having been chosen by size; this is not, so it may differ a little.`);
    this.#history.show(substreams, Math.max(260, this.#place.clientWidth || 360));
  }
}

/** What holds whatever the order inside the substreams that the window cuts. */
function evenness([lower, upper]) {
  const least = Math.max(0, Math.floor(lower ?? 0));
  const widest = upper !== null ? `it is ${interval(least, upper)}` : 0 < least ? `it is at least ${count(least)}` : "it is not known at all";
  return `Where the window cuts a substream, and for what is not sealed, items are taken to come evenly. If they did not, ${widest}.`;
}

/** What is known of an item now. */
async function answerTo({ stream, window, item }, signal) {
  const frequency = ask(streamPath(stream, "/frequencies") + params({ window, trend: true }), { method: "POST", body: { items: [item] }, signal });
  const history = ask(streamPath(stream, "/history") + params({ window }), { method: "POST", body: { item }, signal });
  // If both are refused, the first says best why.
  history.catch(() => {});
  const answer = await frequency;
  return { row: answer.items[0], past: await history };
}
