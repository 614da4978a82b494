// Everything on the page that came from a peer is put in as text: nothing here takes HTML.

const SVG = "http://www.w3.org/2000/svg";

/** An HTML element. Strings among the children become text nodes. */
export function el(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** An SVG element. */
export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

export function set(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) element.removeAttribute(name);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  return element;
}

/** Change a text only when it differs, so that nothing is announced or painted again for nothing. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export const byId = (id) => document.getElementById(id);

export const calm = matchMedia("(prefers-reduced-motion: reduce)");

function fill(element, attributes, children) {
  set(element, attributes);
  element.append(...children);
  return element;
}
