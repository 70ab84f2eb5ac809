// Elements built piece by piece: text is always a text node, never HTML.

const kSvg = "http://www.w3.org/2000/svg";

function fill(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (typeof value === "function") made.addEventListener(name, value);
    else made.setAttribute(name, value === true ? "" : String(value));
  }
  made.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

// element("a", {href, class, click: (event) => …}, "text", child, …)
export const element = (name, attributes = {}, ...children) => fill(document.createElement(name), attributes, children);
export const svg = (name, attributes = {}, ...children) => fill(document.createElementNS(kSvg, name), attributes, children);
export const button = (text, click, attributes = {}) => element("button", { type: "button", click, ...attributes }, text);
export const by_id = (id) => document.getElementById(id);

// For screen readers, and for nobody else.
export function announce(text) { by_id("status").textContent = text; }

// Runs `work` once at the next frame however often it is asked for. What takes long is asked for more rarely: at most a third of the time
// is spent on it.
export function at_frames(work) {
  let wanted = false;
  let next = 0;
  const run = (now) => {
    if (now < next) return requestAnimationFrame(run);
    wanted = false;
    const begin = performance.now();
    work();
    const end = performance.now();
    next = end + 2 * (end - begin);
  };
  return () => {
    if (wanted) return;
    wanted = true;
    requestAnimationFrame(run);
  };
}
