// Forms for new sources and streams: fields, what they mean to the service, and what it says to them.

import { el, fill } from "./dom.js";
import { sentence } from "./words.js";

/** A field with a label and a hint. `kind` is text, number, a list of options, or lines. */
function field({ name, label, kind = "text", hint = "", value = "", isWide = false, needed = false }) {
  const id = `field-${crypto.randomUUID()}`;
  const given = { id, name, "aria-describedby": hint ? `${id}-hint` : null, required: needed };
  const input = Array.isArray(kind) ? el("select", given, ...kind.map(([value, text]) => el("option", { value }, text)))
    : kind === "lines" ? el("textarea", { ...given, rows: 3, spellcheck: "false" })
    : el("input", { ...given, type: "text", inputmode: kind === "number" ? "decimal" : "text", autocomplete: "off", spellcheck: "false" });
  if (value !== "") input.value = value;
  return el("div", { class: isWide ? "field wide" : "field" }, el("label", { for: id }, label), input, hint ? el("span", { class: "note", id: `${id}-hint` }, hint) : null);
}

/** A number as it was typed. What is none, or would be rounded, is sent as text: the service says what is wrong with it. */
const number = (text) => (text.trim() !== "" && Number.isFinite(Number(text)) && !/^\d{16,}$/.test(text.trim()) ? Number(text) : text);
const lines = (text) => text.split("\n").map((line) => line.replace(/\r$/, "")).filter((line) => line !== "");

/** The members that were filled in. */
function filledIn(members) {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== "" && value !== null));
}

/** A window, a size: a number, or a text such as 15m. */
const quantity = (text) => (/^\d+$/.test(text.trim()) ? Number(text) : text.trim());

export const sourceFields = () => [
  field({ name: "name", label: "Name", needed: true, hint: "Letters, digits, - _ ." }),
  field({ name: "protects", label: "Protects", kind: [["event", "events: what each is about"], ["presence", "presence: also whether it came"], ["users", "users: all they send in a window"]], hint: "For all its streams, for life." }),
  field({ name: "epsilon", label: "Budget ε", kind: "number", needed: true, hint: "What all its streams may spend together." }),
  field({ name: "delta", label: "Budget δ", kind: "number", hint: "Streams that find keys need one, such as 1e-9." }),
  field({ name: "columns", label: "Columns", kind: "lines", value: "page text", needed: true, isWide: true, hint: "One per line: its name, then text or integer." }),
  field({ name: "time_column", label: "Column of times", hint: "Without it, events have the time of their arrival." }),
  field({ name: "user_column", label: "Column of users", hint: "Only where users are protected." }),
  field({ name: "items_per_user", label: "Items per user", kind: "number", hint: "That count in a substream; only where users are protected." }),
  field({ name: "routing", label: "Routing", kind: [["independent", "not by the item"], ["by_item", "by the item"]], hint: "How events find their producers." }),
];

export function sourceOf(form) {
  const given = Object.fromEntries(new FormData(form));
  const columns = Object.fromEntries(lines(given.columns).map((line) => {
    const [name, kind = "text"] = line.trim().split(/[\s:=]+/);
    return [name, kind];
  }));
  const { name, protects, epsilon, delta, time_column, user_column, items_per_user, routing } = given;
  return filledIn({ name, protects, epsilon: number(epsilon), delta: number(delta), columns, time_column, user_column, items_per_user: number(items_per_user), routing });
}

export const streamFields = (source) => [
  field({ name: "name", label: "Name", needed: true, hint: "Letters, digits, - _ ." }),
  field({ name: "item", label: "Column of items", kind: Object.entries(source.columns).map(([name, kind]) => [name, `${name} (${kind})`]) }),
  field({ name: "window", label: "Window", value: "100000", needed: true, hint: "A number of items, or a time such as 15m." }),
  field({ name: "epsilon", label: "ε", kind: "number", value: "1", needed: true, hint: `Of ${source.ledger.epsilon} for all streams together.` }),
  field({ name: "delta", label: "δ", kind: "number", hint: "1e-10 where it is needed and nothing is said." }),
  field({ name: "keys", label: "Keys", kind: [["found", "found privately in the stream"], ["asked", "named by whoever asks"], ["list", "a public list"], ["below", "integers below"]] }),
  field({ name: "expected", label: "Expected items", kind: "number", hint: "In a time window: about how many." }),
  field({ name: "lateness", label: "Lateness", hint: "How late events may come, such as 30s." }),
  field({ name: "memory", label: "Memory", hint: "Such as 400KB; by default what the planner takes." }),
  field({ name: "retention", label: "Windows kept", kind: "number", value: "1" }),
  field({ name: "listed", label: "The list, or the end of the integers", kind: "lines", isWide: true, hint: "One key per line. A list that is made from the stream itself reveals who was in it." }),
];

export function streamOf(form, source) {
  const given = Object.fromEntries(new FormData(form));
  const isInteger = source.columns[given.item] === "integer";
  const listed = lines(given.listed);
  const keys = {
    found: "found",
    asked: "asked",
    list: isInteger ? { integers: listed.map(number) } : { list: listed },
    below: { below: number(listed[0] ?? "") },
  }[given.keys];
  return filledIn({
    name: given.name, item: given.item, window: quantity(given.window), epsilon: number(given.epsilon), delta: number(given.delta), keys,
    expected: number(given.expected), lateness: given.lateness.trim(), memory: quantity(given.memory), retention: number(given.retention),
  });
}

/**
 * A form with two buttons: one checks and changes nothing, one makes it. Both say what came of it.
 */
export function maker({ title, fields, check, make }) {
  const said = el("div", { role: "status" });
  const form = el("form", { class: "card-form", novalidate: true });
  const attempt = async (act) => {
    fill(said, el("p", { class: "note" }, "Asking …"));
    try {
      fill(said, ...(await act(form)));
    } catch (error) {
      fill(said, el("p", { class: "problem" }, sentence(error.message)));
    }
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    attempt(make);
  });
  form.append(el("div", { class: "fields" }, ...fields),
    el("div", { class: "buttons" }, el("button", { type: "button", onclick: () => attempt(check) }, "Check"), el("button", { type: "submit", class: "main" }, title)), said);
  return el("details", { class: "maker" }, el("summary", {}, title), form);
}
