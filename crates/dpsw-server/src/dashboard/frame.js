// What is around the views: which one there is, the streams, the connection, and what is said when there is nothing to show.

import { hasToken } from "./api.js";
import { byId, el, fill, say, show } from "./dom.js";
import { write } from "./place.js";
import { harmless } from "./words.js";

const STATES = { live: "Live", waiting: "Connecting", lost: "Reconnecting", refused: "Refused" };

/** Draws the frame; `go` leads to another place, `retry` tries to come in again. */
export function drawFrame(state, { go, retry }) {
  const { grant, place, stream } = state;
  const isIn = grant !== null;
  const message = hasToken() ? messageOf(state, go, retry) : null;
  const isLive = isIn && message === null && place.view === "live";
  show(byId("enter"), !hasToken());
  show(byId("message"), message !== null);
  if (message) drawMessage(message);
  show(byId("live"), isLive);
  show(byId("pause"), isLive);
  show(byId("admin"), isIn && message === null && place.view === "admin");
  show(byId("picker"), isIn && state.streams.length > 0 && place.view === "live");
  show(byId("leave"), hasToken());
  drawViews(state);
  drawPicker(state);
  drawConnection(state, isLive);
  document.title = isLive ? `${stream.name} · dpsw` : "dpsw";
}

function drawViews({ grant, place }) {
  const isAdmin = grant?.roles.includes("admin") ?? false;
  show(byId("views"), isAdmin);
  show(byId("to-admin"), isAdmin);
  for (const [id, view] of [["to-live", "live"], ["to-admin", "admin"]]) {
    const link = byId(id);
    if (place.view === view) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
    link.setAttribute("href", write({ ...place, view }));
  }
}

/** Why there is no view. */
function messageOf({ grant, place, streams, stream, connection }, go, retry) {
  if (grant === null) {
    if (connection.name !== "lost") return null;
    return { title: "The service cannot be reached", text: "It may be starting. This page goes on trying.", button: "Try now", act: retry };
  }
  if (place.view === "admin" || stream) return null;
  if (streams.length === 0) return noStreams(grant.roles.includes("admin"), go);
  const first = streams[0].name;
  return {
    title: "There is no such stream",
    text: `The stream ${harmless(place.stream ?? "", 64)} is gone, or this token may not see it.`,
    button: `Show ${first}`,
    act: () => go({ stream: first, window: null, item: null, base64: null }),
  };
}

function noStreams(isAdmin, go) {
  const title = "There are no streams yet";
  if (!isAdmin) return { title, text: "This token may see no stream. Ask whoever runs the service for one that may." };
  return { title, text: "Make a source and a stream, then send events to it.", button: "Make a stream", act: () => go({ view: "admin" }) };
}

function drawMessage({ title, text, button, act }) {
  say(byId("message-title"), title);
  say(byId("message-text"), text);
  show(byId("message-button"), button !== undefined);
  say(byId("message-button"), button ?? "");
  byId("message-button").onclick = act ?? null;
}

function drawPicker({ streams, stream }) {
  const picker = byId("stream");
  const names = streams.map(({ name, source }) => `${name} · ${source ?? "sealed elsewhere"}`);
  const said = names.join("\n");
  if (picker.dataset.said !== said) {
    picker.dataset.said = said;
    fill(picker, ...streams.map(({ name }, index) => el("option", { value: name }, names[index])));
  }
  // Where there is no such stream none is chosen, so that each can be.
  if (!stream) picker.selectedIndex = -1;
  else if (picker.value !== stream.name) picker.value = stream.name;
}

function drawConnection({ connection, isPaused }, isLive) {
  const pill = byId("connection");
  show(pill, isLive);
  pill.dataset.state = isPaused ? "paused" : connection.name;
  say(pill, isPaused ? "Paused" : STATES[connection.name]);
  say(byId("pause"), isPaused ? "Go on" : "Pause");
}

export function drawFooter({ grant, isReady }) {
  const health = isReady === null ? "" : isReady ? "The service takes events." : "The service takes no events now.";
  say(byId("footer"), grant ? `${health} Every number here is noisy on purpose, and comes with how far off it may be.`.trim() : "");
  byId("footer").classList.toggle("ill", isReady === false);
}

export function wear(theme) {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  say(byId("theme"), `Theme: ${theme}`);
}
