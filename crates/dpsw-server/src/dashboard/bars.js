// The ranked bars. Only rows that can be seen are in the page, so that ten thousand cost as much as thirty.

import { el, fill, perFrame, say } from "./dom.js";
import { count, harmless, interval, percent, pieces, step } from "./words.js";

/** So few rows are all in the page, also on paper. */
const FEW = 60;
/** Rows above and below what can be seen, so that scrolling and the tab key find something. */
const BEYOND = 6;
/** Names are cut here in the list; the look-up shows the whole. */
const NAME_LEN = 160;
/** Grid lines of the scale. */
const STEPS = 5;
const TIMING = { duration: 450, easing: "cubic-bezier(.3, 0, .2, 1)" };
/** Rows that change places before the eyes of whoever looks, at most. */
const MOVES_MAX = 8;
/** Whoever sees changes faster than this sees no movement, only changes. */
const CALM_MS = 700;

const TRENDS = { rising: ["▲", "rising"], falling: ["▼", "falling"], steady: ["▬", "steady"] };

/** What a row is about, whatever its rank. */
export const keyOf = (row) => (row.item_base64 === undefined ? `t${row.item}` : `b${row.item_base64}`);

/** Whether noise may have made a row: it may count nothing, or less than a quarter of what is shown. */
export const isUnsure = (row) => row.unsure || row.lower < 1;

/** Where the scale ends. Bars never reach beyond it. */
export function scaleOf(rows) {
  const most = rows.reduce((most, row) => Math.max(most, row.estimate, row.upper), 1);
  const size = step(most, STEPS);
  return { size, end: size * Math.ceil(most / size) };
}

/** The name of an item, as text in pieces that stand for themselves. */
export function nameOf(item, most) {
  const parts = pieces(String(item), most).map(({ text, isEscape }) => (isEscape ? el("span", { class: "escape" }, text) : text));
  return el("bdi", {}, ...parts);
}

export class Bars {
  #root;
  #head;
  #body;
  #axis = el("span", { class: "plot axis", "aria-hidden": "true" });
  #slots = [];
  #rows = [];
  #scale = { size: 1, end: 1 };
  #line = null;
  #chosen = null;
  #before = new Map();
  #changedAt = 0;
  #height = 40;
  #onchoice;
  #calm = matchMedia("(prefers-reduced-motion: reduce)");

  constructor(root, onchoice) {
    this.#root = root;
    this.#onchoice = onchoice;
    const cell = (name, text) => el("span", { class: name, role: "columnheader" }, text);
    this.#head = el("div", { class: "row head", role: "row", "aria-rowindex": 1 },
      cell("rank", "#"), cell("name", "Item"), this.#axis, cell("value", "Estimate"), cell("interval", "95 % interval"),
      cell("share", "Share"), cell("trend", "Trend"));
    this.#body = el("div", { class: "rows", role: "rowgroup" });
    fill(root, el("div", { role: "rowgroup" }, this.#head), this.#body);
    const again = perFrame(() => this.#place());
    addEventListener("scroll", again, { passive: true });
    new ResizeObserver(again).observe(root);
  }

  /** Shows rows; `line` is a count that is drawn across, `chosen` the key that is looked up. */
  show(rows, { line = null, chosen = null } = {}) {
    const moves = this.#mayMove();
    this.#rows = rows;
    this.#line = line;
    this.#chosen = chosen;
    this.#scale = scaleOf(rows);
    this.#root.setAttribute("aria-rowcount", rows.length + 1);
    this.#drawAxis();
    this.#place(moves);
  }

  choose(key) {
    this.#chosen = key;
    this.#place();
  }

  #mayMove() {
    const now = performance.now();
    const isCalm = CALM_MS <= now - this.#changedAt;
    this.#changedAt = now;
    return isCalm && !this.#calm.matches && !document.hidden;
  }

  #drawAxis() {
    const { size, end } = this.#scale;
    const ticks = Math.round(end / size);
    this.#root.style.setProperty("--step", `${100 / ticks}%`);
    this.#root.style.setProperty("--line", this.#line === null ? "-1%" : this.#at(this.#line));
    this.#root.classList.toggle("lined", this.#line !== null);
    const label = `${size} ${ticks}`;
    if (this.#axis.dataset.label === label) return;
    this.#axis.dataset.label = label;
    fill(this.#axis, ...Array.from({ length: ticks + 1 }, (_, tick) => {
      const mark = el("span", { class: "tick" }, count(tick * size));
      mark.style.left = `${(100 * tick) / ticks}%`;
      return mark;
    }));
  }

  #at(value) {
    return `${Math.min(100, Math.max(0, (100 * value) / this.#scale.end))}%`;
  }

  /** Puts the rows that can be seen into the page. */
  #place(moves = false) {
    this.#height = parseFloat(getComputedStyle(this.#root).getPropertyValue("--row")) || 40;
    this.#body.style.height = `${this.#rows.length * this.#height}px`;
    const [first, end] = this.#seen();
    const focused = this.#slots.find((slot) => slot.button === document.activeElement);
    const kept = focused?.key;
    this.#resize(end - first);
    const shown = new Map();
    this.#slots.forEach((slot, place) => {
      const index = first + place;
      this.#write(slot, this.#rows[index], index);
      shown.set(slot.key, slot.drawn);
    });
    if (moves) this.#move();
    this.#before = shown;
    if (focused && focused.button !== document.activeElement || focused?.key !== kept) this.#slots.find((slot) => slot.key === kept)?.button.focus({ preventScroll: true });
  }

  #seen() {
    if (this.#rows.length <= FEW) return [0, this.#rows.length];
    const top = this.#body.getBoundingClientRect().top;
    const first = Math.floor(-top / this.#height) - BEYOND;
    const end = Math.ceil((innerHeight - top) / this.#height) + BEYOND;
    const within = (index) => Math.min(this.#rows.length, Math.max(0, index));
    return [within(first), within(end)];
  }

  #resize(len) {
    while (this.#slots.length < len) {
      const slot = this.#slot();
      this.#slots.push(slot);
      this.#body.append(slot.row);
    }
    while (len < this.#slots.length) this.#slots.pop().row.remove();
  }

  #slot() {
    const cell = (name, ...inside) => el("span", { class: name, role: "cell" }, ...inside);
    const slot = { key: null, row: null, source: null, index: -1, drawn: null };
    slot.button = el("button", { type: "button", class: "item", onclick: () => slot.source && this.#onchoice(slot.source) });
    slot.rank = cell("rank");
    slot.fill = el("span", { class: "fill" });
    slot.whisker = el("span", { class: "whisker" });
    slot.value = cell("value");
    slot.interval = cell("interval");
    slot.share = cell("share");
    slot.arrow = el("span", { "aria-hidden": "true" });
    slot.trend = el("span", { class: "unseen" });
    slot.row = el("div", { class: "row", role: "row" }, slot.rank, cell("name", slot.button),
      el("span", { class: "plot", "aria-hidden": "true" }, slot.fill, slot.whisker),
      slot.value, slot.interval, slot.share, cell("trend", slot.arrow, slot.trend));
    return slot;
  }

  #write(slot, row, index) {
    const key = keyOf(row);
    const isUnsureRow = isUnsure(row);
    if (slot.key !== key) {
      fill(slot.button, nameOf(row.item, NAME_LEN));
      slot.button.title = harmless(row.item, NAME_LEN);
      slot.key = key;
    }
    if (slot.index !== index) {
      slot.row.setAttribute("aria-rowindex", index + 2);
      say(slot.rank, count(index + 1));
    }
    slot.row.style.transform = `translateY(${index * this.#height}px)`;
    slot.index = index;
    slot.source = row;
    slot.row.classList.toggle("unsure", isUnsureRow);
    slot.row.classList.toggle("chosen", key === this.#chosen);
    slot.button.setAttribute("aria-current", String(key === this.#chosen));
    say(slot.value, `${isUnsureRow ? "~ " : ""}${count(row.estimate)}`);
    say(slot.interval, interval(row.lower, row.upper));
    say(slot.share, row.share === null ? "–" : percent(row.share));
    this.#writeTrend(slot, row, isUnsureRow);
    this.#draw(slot, row, index);
  }

  #writeTrend(slot, row, isUnsureRow) {
    const [arrow, word] = TRENDS[row.trend] ?? ["", "not known"];
    say(slot.arrow, arrow);
    say(slot.trend, isUnsureRow ? `${word}; may be noise` : word);
    slot.arrow.className = row.trend ?? "";
    slot.arrow.title = word;
  }

  #draw(slot, row, index) {
    // Where nothing is known of an end, the line reaches over the whole scale.
    const [lower, value, upper] = [row.lower ?? 0, row.estimate, row.upper ?? Infinity].map((value) => this.#at(value));
    slot.drawn = { index, lower, value, upper };
    slot.fill.style.width = value;
    slot.whisker.style.left = lower;
    slot.whisker.style.right = `${100 - parseFloat(upper)}%`;
  }

  /** Lets rows and their bars move from where the same items were. Where most change places there is nothing to follow. */
  #move() {
    const known = this.#slots.filter((slot) => this.#before.has(slot.key));
    const moved = known.filter((slot) => this.#before.get(slot.key).index !== slot.index);
    if (moved.length <= MOVES_MAX) moved.forEach((slot) => this.#moveRow(slot));
    known.forEach((slot) => this.#moveBar(slot));
  }

  #moveRow(slot) {
    const to = (place) => ({ transform: `translateY(${place * this.#height}px)` });
    slot.row.animate([to(this.#before.get(slot.key).index), to(slot.index)], TIMING);
  }

  #moveBar(slot) {
    const old = this.#before.get(slot.key);
    if (old.value !== slot.drawn.value) slot.fill.animate([{ width: old.value }, { width: slot.drawn.value }], TIMING);
    const whisker = ({ lower, upper }) => ({ left: lower, right: `${100 - parseFloat(upper)}%` });
    if (old.lower !== slot.drawn.lower || old.upper !== slot.drawn.upper) slot.whisker.animate([whisker(old), whisker(slot.drawn)], TIMING);
  }
}
