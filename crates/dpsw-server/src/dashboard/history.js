// An item over time: a line with a band that the truth lies in.

import { now } from "./api.js";
import { el, fill, say, svg } from "./dom.js";
import { count, interval, lasting, moment, step } from "./words.js";

const HEIGHT = 190;
const MARGIN = { top: 12, right: 10, bottom: 26, left: 46 };
const STEPS = 4;
/** Times of a rate, from the longest. */
const RATES = [["day", 86_400_000], ["hour", 3_600_000], ["minute", 60_000], ["second", 1000]];

/** What is drawn: rates, as substreams at the ends are shorter than others. */
export function points(substreams) {
  const whole = substreams.filter(({ window }) => window.start < window.end);
  const { factor, words } = measure(whole);
  const rate = (value, { start, end }) => (factor * value) / (end - start);
  return {
    words,
    all: whole.map(({ window, estimate, lower, upper }) => ({
      window,
      count: { estimate, lower, upper },
      at: (window.start + window.end) / 2,
      value: rate(estimate, window),
      // Where nothing is known of an end, the band reaches down to none and up to the top.
      lower: rate(lower ?? 0, window),
      upper: rate(upper ?? Infinity, window),
    })),
  };
}

/** Per cent of the items, or a rate that is easy to read. */
function measure(spells) {
  if (spells.length === 0 || spells[0].window.unit === "items") return { factor: 100, words: "% of the items" };
  const longest = Math.max(...spells.map(({ window }) => window.end - window.start));
  const [name, size] = RATES.find(([, size]) => size <= longest) ?? RATES.at(-1);
  return { factor: size, words: `Per ${name}` };
}

const shortened = (value) => (Math.abs(value) < 10 && !Number.isInteger(value) ? String(Number(value.toPrecision(2))) : count(value));

/** Where a point was, in words. */
const when = ({ unit, start, end }) => (unit === "items" ? `${count(start)} – ${count(end)}` : `${moment(start, now())} – ${moment(end, now())}`);

/** A place for a history: what somebody has opened, scrolled or focused there stays when the numbers change. */
export class History {
  #note = el("p", { class: "note" });
  #drawing = el("div");
  #rows = el("tbody");
  #table = table(this.#rows);
  element = el("div", {}, this.#note, this.#drawing, this.#table);

  /** Shows substreams, in so many pixels. */
  show(substreams, width) {
    const { all, words } = points(substreams);
    this.#table.hidden = all.length === 0;
    if (all.length === 0) {
      say(this.#note, "No whole substream of this window is sealed, so there is no history.");
      return fill(this.#drawing);
    }
    say(this.#note, `${words}, in each substream of ${sizeOf(all)}; the band holds the truth with 95 %`);
    fill(this.#drawing, drawing(all, words, width));
    fill(this.#rows, ...all.toReversed().map(row));
  }
}

function drawing(all, words, width) {
  const scale = scales(all, width);
  const label = `History: ${words}, from ${shortened(all[0].value)} to ${shortened(all.at(-1).value)}; the table below has all numbers`;
  return svg("svg", { class: "history", viewBox: `0 0 ${width} ${HEIGHT}`, role: "img", "aria-label": label },
    ...grid(scale, width), ...band(all, scale), ...labels(all, scale, width));
}

function sizeOf(all) {
  const longest = Math.max(...all.map(({ window }) => window.end - window.start));
  return all[0].window.unit === "items" ? `${count(longest)} items` : lasting(longest);
}

function scales(all, width) {
  const [start, end] = [all[0].window.start, all.at(-1).window.end];
  const least = Math.min(0, ...all.map(({ lower }) => lower));
  const known = all.flatMap(({ value, upper }) => (upper === Infinity ? [value] : [value, upper]));
  const most = Math.max(...known, least + 1e-9);
  const size = step(most - least, STEPS);
  const [low, high] = [size * Math.floor(least / size), size * Math.ceil(most / size)];
  const [w, h] = [width - MARGIN.left - MARGIN.right, HEIGHT - MARGIN.top - MARGIN.bottom];
  return {
    x: (at) => MARGIN.left + (w * (at - start)) / (end - start),
    y: (value) => MARGIN.top + (h * (high - Math.min(high, value))) / (high - low),
    ticks: Array.from({ length: Math.round((high - low) / size) + 1 }, (_, tick) => low + tick * size),
  };
}

function grid({ y, ticks }, width) {
  return ticks.flatMap((tick) => [
    svg("line", { class: "grid", x1: MARGIN.left, x2: width - MARGIN.right, y1: y(tick), y2: y(tick) }),
    svg("text", { x: MARGIN.left - 6, y: y(tick) + 4, "text-anchor": "end" }, shortened(Number(tick.toPrecision(12)))),
  ]);
}

function band(all, { x, y }) {
  const path = (list, value) => list.map((point) => `${x(point.at).toFixed(1)},${y(value(point)).toFixed(1)}`).join(" L");
  const upper = path(all, (point) => point.upper);
  const lower = path(all.toReversed(), (point) => point.lower);
  // A single point has no line, but a band all the same.
  const bars = all.map((point) => svg("line", { class: "error", x1: x(point.at), x2: x(point.at), y1: y(point.lower), y2: y(point.upper) }));
  const dots = all.map((point) => {
    const text = `${when(point.window)}: ${count(point.count.estimate)} (${interval(point.count.lower, point.count.upper)})`;
    return svg("circle", { class: "dot", cx: x(point.at), cy: y(point.value), r: all.length < 40 ? 3.5 : 1.5 }, svg("title", {}, text));
  });
  return [svg("path", { class: "band", d: `M${upper} L${lower} Z` }), svg("path", { class: "line", d: `M${path(all, (point) => point.value)}` }), ...bars, ...dots];
}

function labels(all, { x }, width) {
  const word = ({ unit }, at) => (unit === "items" ? count(at) : moment(at, now()));
  const { window } = all[0];
  const [start, end] = [window.start, all.at(-1).window.end];
  const y = HEIGHT - 8;
  return [
    svg("text", { x: x(start), y, "text-anchor": "start" }, word(window, start)),
    svg("text", { x: width - MARGIN.right, y, "text-anchor": "end" }, word(window, end)),
  ];
}

const row = ({ window, count: { estimate, lower, upper } }) =>
  el("tr", {}, el("td", {}, when(window)), el("td", {}, count(estimate)), el("td", {}, interval(lower, upper)));

function table(rows) {
  const head = ["When", "Estimate", "95 % interval"].map((text) => el("th", { scope: "col" }, text));
  return el("details", { class: "numbers" }, el("summary", {}, "The same in numbers"),
    el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "History in numbers" },
      el("table", {}, el("thead", {}, el("tr", {}, ...head)), rows)));
}
