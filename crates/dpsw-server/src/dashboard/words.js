// Numbers, times and names as people read them.

const WHOLE = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const CLOCK = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const DATE = { day: "numeric", month: "short", year: "numeric" };
const DAY = new Intl.DateTimeFormat("en-GB", { ...DATE, hour: "2-digit", minute: "2-digit" });
const SHORT = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });
const WHOLE_TIME = new Intl.DateTimeFormat("en-GB", { ...DATE, hour: "2-digit", minute: "2-digit", second: "2-digit", timeZoneName: "short" });

/** A count, rounded. Adding 0 writes no -0. */
export const count = (value) => WHOLE.format(Math.round(value) + 0);

/** An interval, rounded outwards so that it still holds. An end of which nothing is known is said to be that. */
export function interval(lower, upper) {
  const end = (value, round) => (value === null ? "?" : WHOLE.format(round(value) + 0));
  return `${end(lower, Math.floor)} – ${end(upper, Math.ceil)}`;
}

/** A share of the whole in per cent. */
export function percent(share) {
  const size = Math.abs(100 * share);
  if (0 < size && size < 0.0005) return "< 0.001 %";
  return `${(100 * share).toFixed(size === 0 || 0.095 <= size ? 2 : 3)} %`;
}

/** A parameter as it was set: 1, 0.5, 1e-10. Sums of such are not exact in their last digits, which nobody set. */
export const parameter = (value) => (value === null ? "none" : String(Number(value.toPrecision(12))));

export const day = (ms) => DAY.format(ms);

/** A time of day; on another day than today, with the day. */
export function moment(ms, today) {
  const isToday = new Date(ms).toDateString() === new Date(today).toDateString();
  return isToday ? CLOCK.format(ms) : `${SHORT.format(ms)}, ${CLOCK.format(ms)}`;
}

/** A time that stands for itself, for files. */
export const wholeTime = (ms) => WHOLE_TIME.format(ms);

const UNITS = [["d", 86_400_000, "day"], ["h", 3_600_000, "hour"], ["m", 60_000, "minute"], ["s", 1000, "second"], ["ms", 1, "millisecond"]];

/** Milliseconds of a time such as "15m"; `null` if it is none. */
export function millis(text) {
  const [, number, unit] = /^(\d{1,9}) ?(ms|s|m|h|d)$/.exec(String(text).trim()) ?? [];
  const known = UNITS.find(([name]) => name === unit);
  return known ? Number(number) * known[1] : null;
}

/** A time as the service writes it, with the largest unit that divides it. */
export function written(ms) {
  const [name, size] = UNITS.find(([, size]) => ms % size === 0);
  return `${ms / size}${name}`;
}

/** A window: "20,000 items", "1 minute". */
export function span(window) {
  if (typeof window === "number") return window === 1 ? "item" : `${WHOLE.format(window)} items`;
  const ms = millis(window);
  const [, size, name] = UNITS.find(([, size]) => ms % size === 0);
  const number = ms / size;
  return number === 1 ? name : `${WHOLE.format(number)} ${name}s`;
}

/** A text as a sentence: what the service says begins in lower case and has no full stop. */
export const sentence = (text) => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;

/** How long something takes or took, roughly. */
export function lasting(ms) {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  for (const [name, size] of [["d", 86_400_000], ["h", 3_600_000], ["min", 60_000]]) {
    if (ms >= 2 * size) return `${WHOLE.format(Math.floor(ms / size))} ${name}`;
  }
  return `${(ms / 1000).toFixed(ms < 9950 && ms % 1000 !== 0 ? 1 : 0)} s`;
}

/** How long ago, in whole seconds at the least. */
export const ago = (ms) => (ms < 1000 ? "now" : `${lasting(1000 * Math.floor(ms / 1000))} ago`);

export const bytes = (size) => (size < 1e6 ? `${count(size / 1e3)} KB` : `${(size / 1e6).toFixed(1)} MB`);

/** Characters that move or reorder what stands around them, or cannot be seen. */
const STEERING = /[\p{Cc}\p{Zl}\p{Zp}\u00ad\u034f\u061c\u115f\u1160\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]|\p{Cs}/u;

/**
 * A name in pieces, each a text and whether it stands for a character that is not shown as it is. At most so many characters;
 * the last piece says whether something is left out.
 */
export function pieces(name, most = Infinity) {
  const all = [];
  let plain = "";
  let taken = 0;
  const flush = () => {
    if (plain) all.push({ text: plain, isEscape: false });
    plain = "";
  };
  for (const character of name) {
    if (taken === most) {
      flush();
      all.push({ text: "…", isEscape: true });
      return all;
    }
    taken += 1;
    if (STEERING.test(character)) {
      flush();
      all.push({ text: `\\u{${character.codePointAt(0).toString(16)}}`, isEscape: true });
    } else {
      plain += character;
    }
  }
  flush();
  return all.length ? all : [{ text: "(empty)", isEscape: true }];
}

/** A name as one harmless text. */
export const harmless = (name, most = Infinity) => pieces(String(name), most).map((piece) => piece.text).join("");

/** The largest of 1, 2, 5, 10, 20 … steps of which at most so many fit. */
export function step(most, steps) {
  const rough = Math.max(most, Number.MIN_VALUE) / steps;
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((factor) => factor * power).find((size) => most / size <= steps) ?? 10 * power;
}
