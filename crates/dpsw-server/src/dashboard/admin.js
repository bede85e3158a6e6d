// Sources, streams and their ledgers: seen, made, checked and deleted.

import { ask, Refused, sourcePath, streamPath } from "./api.js";
import { budget } from "./contract.js";
import { byId, el, fill } from "./dom.js";
import { maker, sourceFields, sourceOf, streamFields, streamOf } from "./forms.js";
import { bytes, day, parameter, sentence, span } from "./words.js";

const STREAM_NAMES = ["Stream", "Items", "Window", "Keys", "Memory", "Since", ""];
const PROTECTS = { event: "events", presence: "presence", users: "users" };

/** Shows everything anew. `onchange` is told when sources or streams were made or deleted, `onstream` which one to show. */
export async function showAdmin(place, { onchange, onstream }) {
  const again = async () => {
    await onchange();
    await showAdmin(place, { onchange, onstream });
  };
  try {
    const [{ sources }, { streams }, status] = await Promise.all([ask("v1/sources"), ask("v1/streams"), statusOf()]);
    fill(place, el("h1", {}, "Administration"), health(status, sources),
      ...sources.map((source) => sourceCard(source, streams.filter((stream) => stream.source === source.name), again, onstream)),
      elsewhereCard(streams.filter((stream) => stream.source === null), again, onstream), newSource(again));
  } catch (error) {
    fill(place, el("h1", {}, "Administration"), el("p", { class: "problem", role: "alert" }, sentence(error.message)));
  }
}

/** Only whoever may do everything learns how the service is. */
async function statusOf() {
  try {
    return await ask("v1/status");
  } catch (error) {
    if (error instanceof Refused && error.status === 403) return null;
    throw error;
  }
}

function health(status, sources) {
  if (status === null) return null;
  const { ready, reasons, brokers, notices } = status;
  const lines = (list) => list.map((text) => el("li", {}, text));
  return el("section", { class: "card", "aria-labelledby": "health" },
    el("div", { class: "head-line" }, el("h2", { id: "health" }, "Health"), el("span", { class: ready ? "good" : "problem" }, ready ? "takes events" : "takes no events")),
    reasons.length ? el("ul", { class: "problem" }, ...lines(reasons)) : null,
    brokers.length ? el("ul", { class: "problem" }, ...lines(brokers)) : brokersAreRead(sources),
    notices.length ? el("ul", {}, ...lines(notices)) : el("p", { class: "note" }, "Nothing to report."));
}

/** Which brokers are read. How far, and when a record came last, is said of none: it tells what came. */
function brokersAreRead(sources) {
  const read = sources.filter(({ broker, streams }) => broker && streams.length);
  return read.length ? el("p", { class: "note" }, `Brokers are read: ${read.map(({ name, broker }) => `${broker.topic} (${broker.kind}) by ${name}`).join(", ")}.`) : null;
}

function sourceCard(source, streams, again, onstream) {
  const columns = Object.entries(source.columns).map(([name, kind]) => `${name} (${kind})`).join(", ");
  const remove = el("button", { type: "button", disabled: source.streams.length > 0, title: source.streams.length ? "It still has streams" : null,
    onclick: () => confirmed(`Delete source ${source.name}?`, "Its ledger stays, and its name is not given again.", source.name, () => ask(sourcePath(source.name), { method: "DELETE" }), again) }, "Delete source");
  return el("section", { class: "card", "aria-label": `Source ${source.name}` },
    el("div", { class: "head-line" }, el("h2", {}, `Source ${source.name}`), remove),
    el("p", { class: "note" }, `Protects ${PROTECTS[source.protects]}. Columns: ${columns}.${source.routing === "by_item" ? " Routed by the item." : ""}`),
    budget(source.name, source.ledger, source.protects),
    table(`Streams of ${source.name}`, STREAM_NAMES, streams.map((stream) => streamRow(stream, again, onstream)), "No streams yet."),
    el("details", {}, el("summary", {}, `Ledger: ${source.ledger.charges.length} charges`),
      table(`Ledger of ${source.name}`, ["Stream", "ε", "δ", "From", "Until"], source.ledger.charges.map(chargeRow), "Nothing was charged yet.")),
    maker({
      title: `New stream of ${source.name}`,
      fields: streamFields(source),
      check: async (form) => {
        const { plan } = await ask(`v1/check/sources/${encodeURIComponent(source.name)}/streams`, { method: "POST", body: streamOf(form, source) });
        return [el("p", { class: "good" }, "It could be made. Nothing was charged. This is the plan:"), el("pre", { tabindex: 0 }, plan.words)];
      },
      make: async (form) => {
        await ask(sourcePath(source.name, "/streams"), { method: "POST", body: streamOf(form, source) });
        await again();
        return [];
      },
    }));
}

/** Streams whose views are sent here, if there are any. */
function elsewhereCard(streams, again, onstream) {
  if (streams.length === 0) return null;
  return el("section", { class: "card", "aria-label": "Sealed elsewhere" },
    el("div", { class: "head-line" }, el("h2", {}, "Sealed elsewhere")),
    el("p", { class: "note" }, "Their views are sent to this service. What they cost is spent where they are sealed."),
    table("Streams that are sealed elsewhere", STREAM_NAMES, streams.map((stream) => streamRow(stream, again, onstream)), ""));
}

function table(label, names, rows, otherwise) {
  if (rows.length === 0) return el("p", { class: "note" }, otherwise);
  const head = names.map((name) => (name === "" ? el("td", {}) : el("th", { scope: "col" }, name)));
  return el("div", { class: "wide-table", tabindex: 0, role: "region", "aria-label": label }, el("table", {}, el("thead", {}, el("tr", {}, ...head)), el("tbody", {}, ...rows)));
}

const cells = (...all) => el("tr", {}, ...all.map((inside) => el("td", {}, inside)));

function streamRow(stream, again, onstream) {
  const keys = typeof stream.keys === "object" ? `${stream.keys.listed} listed` : stream.keys;
  const remove = el("button", { type: "button", "aria-label": `Delete stream ${stream.name}`,
    onclick: () => confirmed(`Delete stream ${stream.name}?`, stream.source === null ? "Its next view makes it anew." : "What is open is given up. What was charged stays charged.", stream.name, () => ask(streamPath(stream.name), { method: "DELETE" }), again) }, "Delete");
  return cells(el("button", { type: "button", class: "link", onclick: () => onstream(stream.name) }, stream.name), stream.item ?? stream.kind, `last ${span(stream.window)}`, keys, bytes(stream.plan.resident_bytes), stream.from_ms === null ? "–" : day(stream.from_ms), remove);
}

const chargeRow = ({ stream, epsilon, delta, from_ms, until_ms }) =>
  cells(stream, parameter(epsilon), parameter(delta), day(from_ms), until_ms === null ? "running" : day(until_ms));

function newSource(again) {
  return el("section", { class: "card", "aria-label": "New source" },
    maker({
      title: "New source",
      fields: sourceFields(),
      check: async (form) => {
        const { name } = await ask("v1/check/sources", { method: "POST", body: sourceOf(form) });
        return [el("p", { class: "good" }, `Source ${name} could be made. Nothing was made.`)];
      },
      make: async (form) => {
        await ask("v1/sources", { method: "POST", body: sourceOf(form) });
        await again();
        return [];
      },
    }));
}

/** Asks for the name before anything is deleted. */
function confirmed(title, warning, name, act, done) {
  const dialog = byId("dialog");
  const problem = el("p", { class: "problem", role: "alert" });
  const typed = el("input", { type: "text", id: "dialog-name", autocomplete: "off", spellcheck: "false" });
  const button = el("button", { type: "submit", class: "danger", disabled: true }, "Delete");
  typed.addEventListener("input", () => (button.disabled = typed.value !== name));
  const form = el("form", {}, el("h2", { id: "dialog-title" }, title), el("p", {}, warning),
    el("div", { class: "field" }, el("label", { for: "dialog-name" }, `Type ${name} to go on`), typed), problem,
    el("div", { class: "buttons" }, button, el("button", { type: "button", onclick: () => dialog.close() }, "Keep it")));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (typed.value !== name) return;
    button.disabled = true;
    try {
      await act();
      dialog.close();
      await done();
    } catch (error) {
      problem.textContent = sentence(error.message);
      button.disabled = false;
    }
  });
  fill(dialog, form);
  dialog.showModal();
  typed.focus();
}
