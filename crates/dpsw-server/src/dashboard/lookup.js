// One item: how often it occurred, and its history.

import { ask, params, streamPath } from "./api.js";
import { nameOf } from "./bars.js";
import { el, fill } from "./dom.js";
import { chart } from "./history.js";
import { count, interval, percent } from "./words.js";

/** Names are shown up to here, which is more than the service keeps by default. */
const NAME_LEN = 20_000;
const WORDS = { rising: "▲ rising", falling: "▼ falling", steady: "▬ steady" };

/** What is known of an item now. */
export async function lookUp(stream, window, item, signal) {
  const scope = { window };
  const frequency = ask(streamPath(stream, "/frequencies") + params({ ...scope, trend: true }), { method: "POST", body: { items: [item] }, signal });
  const history = ask(streamPath(stream, "/history") + params(scope), { method: "POST", body: { item }, signal });
  // If both are refused, the first says best why.
  history.catch(() => {});
  const answer = await frequency;
  return { row: answer.items[0], past: await history };
}

/** Shows it. What somebody has opened stays open. */
export function showFound(place, found) {
  const isOpen = place.querySelector("details")?.open ?? false;
  const { row, past } = found;
  const share = row.share === null ? null : `${percent(row.share)} of the window`;
  const facts = [share, WORDS[row.trend] ?? null].filter((fact) => fact !== null).join(" · ");
  fill(place,
    el("p", { class: "found-name", tabindex: 0, role: "region", "aria-label": "The whole name" }, nameOf(row.item, NAME_LEN)),
    el("p", { class: "found" }, el("strong", {}, count(row.estimate)), ` ${interval(row.lower, row.upper)} with 95 %`),
    el("p", { class: "note" }, facts),
    chart(past.substreams, Math.max(260, place.clientWidth || 360)),
    el("p", { class: "note" }, `Whatever the order inside substreams: ${interval(...row.any_order)}. Rows of a list are corrected for having been chosen by size; this is not, so it may differ a little.`));
  const details = place.querySelector("details");
  if (details) details.open = isOpen;
}

/** Says why there is nothing to show. */
export function showNotFound(place, reason) {
  fill(place, el("p", { class: "problem", role: "alert" }, reason));
}
