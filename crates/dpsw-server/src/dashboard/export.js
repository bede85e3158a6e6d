// What is shown, as files: CSV for spreadsheets, JSON exactly as it was answered, and a drawing.

import { isUnsure, scaleOf } from "./bars.js";
import { el, svg } from "./dom.js";
import { count, harmless, interval, parameter, percent, wholeTime } from "./words.js";

export function download(name, type, text) {
  const address = URL.createObjectURL(new Blob([text], { type }));
  el("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

const COLUMNS = [
  ["rank", (row) => row.rank], ["item", (row) => row.item], ["estimate", (row) => row.estimate], ["lower", (row) => row.lower],
  ["upper", (row) => row.upper], ["share", (row) => row.share], ["trend", (row) => row.trend], ["item_base64", (row) => row.item_base64],
  ["unsure", (row) => row.unsure], ["any_order_lower", (row) => row.any_order[0]], ["any_order_upper", (row) => row.any_order[1]],
  ["window_start", (_, answer) => answer.window.start], ["window_end", (_, answer) => answer.window.end],
  ["window_unit", (_, answer) => answer.window.unit], ["covered_start", (_, answer) => answer.covered.start],
  ["covered_end", (_, answer) => answer.covered.end], ["total", (_, answer) => answer.total], ["epsilon", (_, answer) => answer.epsilon],
  ["delta", (_, answer) => answer.delta], ["hidden", (_, answer) => answer.hidden],
];

/** A field. A text that a spreadsheet would run as a formula gets an apostrophe, which spreadsheets do not show. */
function field(value) {
  if (value === null || value === undefined) return "";
  if (typeof value !== "string") return String(value);
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export function csv(answer) {
  const lines = answer.items.map((row) => COLUMNS.map(([, read]) => field(read(row, answer))).join(","));
  return [COLUMNS.map(([name]) => name).join(","), ...lines, ""].join("\r\n");
}

const ROW = 26;
const DRAWN_ROWS = 100;
const [NAME_X, PLOT_X, PLOT_WIDTH, NUMBER_X, WIDTH] = [44, 300, 420, 736, 960];

/** A drawing that stands for itself: bars with their intervals, what the window is, and what is promised. */
export function drawing(stream, answer) {
  const rows = answer.items.slice(0, DRAWN_ROWS);
  const height = 92 + ROW * rows.length;
  const picture = svg("svg", { xmlns: "http://www.w3.org/2000/svg", viewBox: `0 0 ${WIDTH} ${height}`, width: WIDTH, height,
    "font-family": "system-ui, sans-serif", "font-size": 13, fill: "#1b1e25" },
    svg("defs", {}, stripes()),
    svg("rect", { width: WIDTH, height, fill: "#fff" }),
    svg("text", { x: 16, y: 28, "font-size": 18, "font-weight": 600 }, stream),
    svg("text", { x: 16, y: 48, fill: "#565c6b" }, caption(answer)),
    ...rows.flatMap((row, index) => drawnRow(row, index, scaleOf(rows).end)),
    svg("text", { x: 16, y: height - 14, fill: "#565c6b", "font-size": 12 }, "Lines across the ends of bars: the true count lies there with 95 %. Striped: may be noise."));
  return new XMLSerializer().serializeToString(picture);
}

const stripes = () => svg("pattern", { id: "noise", width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
  svg("rect", { width: 6, height: 6, fill: "#e4e6ea" }), svg("rect", { width: 2.5, height: 6, fill: "#a9afba" }));

function caption({ window, epsilon, delta, hidden }) {
  const place = window.unit === "items" ? `items ${count(window.start)} to ${count(window.end)}` : `${wholeTime(window.start)} to ${wholeTime(window.end)}`;
  const claim = epsilon === null ? "nothing is promised" : `epsilon = ${parameter(epsilon)}, delta = ${parameter(delta)}`;
  return `${place}; ${claim}${hidden ? `; ${count(hidden)} rows that may be noise are not shown` : ""}`;
}

function drawnRow(row, index, end) {
  const y = 70 + ROW * index;
  const at = (value) => PLOT_X + (PLOT_WIDTH * Math.max(0, value)) / end;
  const [lower, upper] = [at(row.lower ?? 0), at(row.upper ?? end)];
  const line = (x1, x2, y1, y2) => svg("line", { x1, x2, y1, y2, stroke: "#1b1e25", "stroke-width": 1.5 });
  return [
    svg("text", { x: 36, y: y + 13, "text-anchor": "end", fill: "#565c6b" }, count(row.rank)),
    svg("text", { x: NAME_X, y: y + 13 }, harmless(row.item, 34)),
    svg("rect", { x: PLOT_X, y, width: Math.max(0, at(row.estimate) - PLOT_X), height: 17, rx: 2, fill: isUnsure(row) ? "url(#noise)" : "#5b7fe8" }),
    line(lower, upper, y + 8.5, y + 8.5), line(lower, lower, y + 4, y + 13), line(upper, upper, y + 4, y + 13),
    svg("text", { x: NUMBER_X, y: y + 13 }, `${isUnsure(row) ? "~ " : ""}${count(row.estimate)}  (${interval(row.lower, row.upper)})${row.share === null ? "" : `  ${percent(row.share)}`}`),
  ];
}
