// What the page shows, as it stands in its address: it can be kept as a bookmark and sent to others. The token never stands there.

export const COUNT = 10;
export const COUNTS = [10, 20, 50, 100, 1000, 10000];
/** The slider goes from here to half of the window. */
export const LEAST_SHARE = 0.0001;
export const MOST_SHARE = 0.5;
const THEMES = ["system", "dark", "light"];

/** The place that an address names. What makes no sense is left out. */
export function read(hash) {
  const given = new URLSearchParams(hash.replace(/^#/, ""));
  const number = (name, isGood) => {
    const value = Number(given.get(name));
    return given.has(name) && isGood(value) ? value : null;
  };
  const theme = given.get("theme");
  return {
    view: given.get("view") === "admin" ? "admin" : "live",
    stream: given.get("stream"),
    window: given.get("window"),
    count: number("count", (value) => Number.isInteger(value) && 1 <= value && value <= 10000) ?? COUNT,
    share: number("at-least", (value) => 0 < value && value < 1),
    all: given.get("all") === "1",
    item: given.get("item"),
    base64: given.get("item-base64"),
    theme: THEMES.includes(theme) ? theme : "system",
  };
}

/** The address of a place. */
export function write(place) {
  const given = new URLSearchParams();
  const put = (name, value) => value !== null && given.set(name, value);
  put("view", place.view === "live" ? null : place.view);
  put("stream", place.stream);
  put("window", place.window);
  put("count", place.count === COUNT ? null : place.count);
  put("at-least", place.share);
  put("all", place.all ? "1" : null);
  put("item", place.item);
  put("item-base64", place.base64);
  put("theme", place.theme === "system" ? null : place.theme);
  return `#${given}`;
}

/** The token behind an address, as the demo hands it over: taken out, so that it stays in no history and no bookmark. */
export function takeToken() {
  const given = new URLSearchParams(location.hash.slice(1));
  const token = given.get("token");
  if (token === null) return null;
  given.delete("token");
  history.replaceState(null, "", `${location.pathname}${location.search}#${given}`);
  return token;
}

export const nextTheme = (theme) => THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
