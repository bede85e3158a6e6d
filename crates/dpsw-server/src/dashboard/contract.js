// What is promised, in plain words, and how much of the budget is spent.

import { el, fill } from "./dom.js";
import { count, day, parameter, sentence } from "./words.js";

const HIDDEN = {
  event: "what any one event was about",
  presence: "what any one event was about, and whether it came at all",
  users: "what any one user sent inside a window",
};
const PUBLIC = {
  event: "how many items came, and when",
  presence: "what the clock says, and no number of items",
  users: "who sends when, and how many items came",
};

/**
 * How often an attacker is right at best who knows everything else and guesses which of two equally likely things is true:
 * (e^ε + δ) / (1 + e^ε).
 */
export function bestGuess(epsilon, delta) {
  if (epsilon === null) return 1;
  return Math.min(1, (1 + delta * Math.exp(-epsilon)) / (1 + Math.exp(-epsilon)));
}

/** Rounded up: an attacker is never promised to be worse than they are. */
export const guessWords = (epsilon, delta) => `${(Math.ceil(1000 * bestGuess(epsilon, delta) - 1e-9) / 10).toFixed(1)} %`;

const claimWords = (epsilon, delta) => (epsilon === null ? "nothing" : `ε = ${parameter(epsilon)}, δ = ${parameter(delta)}`);

/** A bar of what is spent. */
export function meter(label, spent, budget) {
  const part = budget > 0 ? Math.min(1, spent / budget) : 1;
  const bar = el("span", { class: "spent" });
  bar.style.width = `${100 * part}%`;
  return el("div", { class: part < 0.9995 ? "meter" : "meter full", role: "meter", "aria-label": label, "aria-valuemin": 0,
    "aria-valuemax": budget, "aria-valuenow": Math.min(spent, budget), "aria-valuetext": `${parameter(spent)} of ${parameter(budget)}` }, bar);
}

/** The budget of a source and what is spent of it. */
export function budget(source, ledger, protects) {
  const whose = protects === "users" ? "any user, per window," : "any event";
  const delta = ledger.delta === null || ledger.delta === 0 ? null
    : el("p", { class: "note" }, `δ: ${parameter(ledger.delta_spent)} of ${parameter(ledger.delta)}`);
  return el("div", { class: "budget" },
    el("p", { class: "figure" }, el("span", {}, `Budget of source ${source}`), el("strong", {}, `ε ${parameter(ledger.epsilon_spent)} of ${parameter(ledger.epsilon)}${ledger.epsilon_spent < ledger.epsilon ? "" : ", nothing left"}`)),
    meter(`Budget of source ${source}, epsilon`, ledger.epsilon_spent, ledger.epsilon),
    el("p", { class: "note" }, `The most that ${whose} has cost or can cost, with all streams of the source.`),
    delta);
}

function pair(term, ...said) {
  return [el("dt", {}, term), el("dd", {}, ...said)];
}

/** When the newest charge of a stream began. */
const since = (stream, ledger) => ledger.charges.filter((charge) => charge.stream === stream && charge.until_ms === null).at(-1)?.from_ms;

export function showContract(place, contract) {
  const { epsilon, delta, protects, ledger } = contract;
  const guess = el("span", { class: "guess" });
  guess.style.width = `${100 * bestGuess(epsilon, delta)}%`;
  fill(place,
    el("p", { class: "promise" }, sentence(contract.sentence)),
    ledger && budget(contract.source, ledger, protects),
    el("h3", {}, "What an attacker sees"),
    el("p", {}, "Take someone who keeps everything that is ever shown here, knows all the rest, and guesses between two equally likely answers ",
      `about ${protects === "users" ? "one user in one window" : "one event"}. They are right at most `,
      el("strong", {}, guessWords(epsilon, delta)), " of the time. A coin is right 50 %."),
    el("div", { class: "coin", "aria-hidden": "true" }, guess),
    el("dl", { class: "pairs" },
      ...pair("Hidden", HIDDEN[protects]),
      ...pair("Public", PUBLIC[protects]),
      ...pair("This stream", claimWords(epsilon, delta)),
      ...(ledger ? spent(contract.stream, ledger) : pair("Spent", "where it is sealed, not by this service"))));
}

function spent(stream, ledger) {
  const from = since(stream, ledger);
  const charges = ledger.charges.length;
  return [
    ...pair("All of the source", `${claimWords(ledger.epsilon_spent, ledger.delta_spent)}: right at most ${guessWords(ledger.epsilon_spent, ledger.delta_spent)}`),
    ...pair("Since", from === undefined ? "not started" : day(from)),
    ...pair("Charges", `${count(charges)} ${charges === 1 ? "stream" : "streams"}, deleted ones included`),
  ];
}
