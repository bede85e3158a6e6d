// Questions to the service. The token stays in this tab.

const KEPT = "dpsw-token";
let token = sessionStorage.getItem(KEPT);
/** How far the service's clock is ahead of this one, in milliseconds. */
let ahead = 0;

export const hasToken = () => token !== null;

export function setToken(text) {
  token = text;
  if (text === null) sessionStorage.removeItem(KEPT);
  else sessionStorage.setItem(KEPT, text);
}

/** What time it is for the service. */
export const now = () => Date.now() + ahead;

/** The service answered that it does not. */
export class Refused extends Error {
  constructor(status, problem, wait) {
    super(problem.detail);
    this.status = status;
    this.code = problem.code;
    this.wait = wait;
  }

  /** Whether asking again may help without anybody doing something. */
  get isPassing() {
    return this.status === 429 || 500 <= this.status;
  }
}

/** No answer came. */
export class Unreachable extends Error {}

/** A response with an open body. */
export async function open(path, { method = "GET", body, signal } = {}) {
  const headers = { Authorization: `Bearer ${token ?? ""}` };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let response;
  try {
    const sent = body === undefined ? undefined : JSON.stringify(body);
    response = await fetch(path, { method, headers, body: sent, signal, cache: "no-store", credentials: "omit", referrerPolicy: "no-referrer" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Unreachable("the service cannot be reached");
  }
  note(response.headers.get("date"));
  if (!response.ok) throw new Refused(response.status, await problem(response), Number(response.headers.get("retry-after")));
  return response;
}

/** The Date header has whole seconds: half of one is added. */
function note(date) {
  const then = Date.parse(date ?? "");
  if (Number.isFinite(then)) ahead = then + 500 - Date.now();
}

async function problem(response) {
  try {
    return await response.json();
  } catch {
    return { code: "unknown", detail: `the service answered with status ${response.status}` };
  }
}

/** Integers of more than 15 digits stay text: a number would be rounded. No text holds `"item":` without escapes. */
export const parse = (text) => JSON.parse(text.replace(/"item":(\d{16,})/g, '"item":"$1"'));

/** The text of an answer. */
export async function text(path, options) {
  const response = await open(path, options);
  try {
    return await response.text();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Unreachable("the service cannot be reached");
  }
}

/** An answer. */
export async function ask(path, options) {
  const answer = await text(path, options);
  return answer === "" ? null : parse(answer);
}

export const streamPath = (stream, rest = "") => `v1/streams/${encodeURIComponent(stream)}${rest}`;
export const sourcePath = (source, rest = "") => `v1/sources/${encodeURIComponent(source)}${rest}`;

/** Parameters behind an address; those without a value are left out. */
export function params(given) {
  const all = new URLSearchParams();
  for (const [name, value] of Object.entries(given)) {
    if (value !== null && value !== undefined && value !== false) all.set(name, value);
  }
  return all.size ? `?${all}` : "";
}
