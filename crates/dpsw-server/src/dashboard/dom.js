// Elements, made from values. Text is always text: nothing here reads markup.

const SVG = "http://www.w3.org/2000/svg";

/** An element with properties, listeners (`onclick`), attributes and children; `null` children are left out. */
export function el(name, given = {}, ...children) {
  return filled(document.createElement(name), given, children);
}

/** The same for drawings. */
export function svg(name, given = {}, ...children) {
  return filled(document.createElementNS(SVG, name), given, children);
}

function filled(element, given, children) {
  for (const [name, value] of Object.entries(given)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, String(value));
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

export const byId = (id) => document.getElementById(id);

/** Writes a text if it is another one. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function show(element, isShown) {
  if (element.hidden === isShown) element.hidden = !isShown;
}

/** Replaces what is inside. */
export function fill(element, ...children) {
  element.replaceChildren(...children.filter((child) => child !== null && child !== undefined));
}

/** Calls a function at most once per frame, however often it is asked for. */
export function perFrame(call) {
  let isAsked = false;
  return () => {
    if (isAsked) return;
    isAsked = true;
    requestAnimationFrame(() => {
      isAsked = false;
      call();
    });
  };
}

/** A choice of one: radio buttons that look like one row of buttons. */
export function choices(name, options, chosen, onchoice) {
  return options.map(({ value, label }) => {
    const radio = el("input", { type: "radio", name, value, onchange: () => onchoice(value) });
    radio.checked = value === chosen;
    return el("label", { class: "choice" }, radio, el("span", {}, label));
  });
}
