// Shows Markdown that grows: what has not changed since the last time keeps its elements.
import { button, element } from "./dom.js";
import { inline } from "./inline.js";
import { blocks, grown } from "./markdown.js";
import { maths_element } from "./maths.js";

function piece(node) {
  if (typeof node === "string") return node;
  switch (node.type) {
    case "break": return element("br");
    case "code": return element("code", {}, node.text);
    case "maths": return maths_element(node.text, false);
    case "link": return element("a", { href: node.href, target: "_blank", rel: "noopener noreferrer nofollow" }, ...node.children.map(piece));
    default: return element(node.type, {}, ...node.children.map(piece));
  }
}
const pieces = (text) => inline(text).map(piece);

function code(block) {
  const text = element("code", {}, block.text);
  const copy = button("Copy", async () => {
    await navigator.clipboard.writeText(text.textContent);
    copy.textContent = "Copied";
  });
  const head = element("figcaption", {}, element("span", {}, block.language || "text"), copy);
  return element("figure", { class: "code" }, head, element("pre", { tabindex: "0", "aria-label": `Code, ${block.language || "text"}` }, text));
}

function list(block) {
  const items = block.items.map((item) => {
    const box = item.done === null ? null : element("span", { class: "task", role: "img", "aria-label": item.done ? "done" : "open" }, item.done ? "☑ " : "☐ ");
    return element("li", {}, box, ...item.children.map(shown));
  });
  return element(block.ordered ? "ol" : "ul", block.ordered && block.first !== 1 ? { start: block.first } : {}, ...items);
}

function table(block) {
  const row = (name, cells) => element("tr", {}, ...cells.map((cell, i) => element(name, { class: block.align[i] }, ...pieces(cell))));
  return element("div", { class: "scrolls", tabindex: "0", role: "region", "aria-label": "Table" }, element("table", {},
    element("thead", {}, row("th", block.header)), element("tbody", {}, ...block.rows.map((cells) => row("td", cells)))));
}

function shown(block) {
  switch (block.type) {
    case "heading": return element(`h${Math.min(6, block.level + 2)}`, {}, ...pieces(block.text));
    case "code": return code(block);
    case "maths": return maths_element(block.text, true);
    case "rule": return element("hr");
    case "quote": return element("blockquote", {}, ...block.children.map(shown));
    case "list": return list(block);
    case "table": return table(block);
    default: return element("p", {}, ...pieces(block.text));
  }
}

export class MarkdownView {
  #text = "";
  #blocks = [];  // with their elements

  constructor() { this.root = element("div", { class: "markdown" }); }

  update(text) {
    if (text === this.#text) return;
    const old = this.#blocks;
    const found = text.startsWith(this.#text) ? grown(old, text) : blocks(text);
    found.forEach((block, i) => {
      block.element ??= this.#same(old[i], block, text) ?? this.#extended(old[i], block) ?? shown(block);
    });
    const stays = new Set(found.map((block) => block.element));
    for (const block of old) if (!stays.has(block.element)) block.element.remove();
    for (const block of found) if (block.element.parentNode === null) this.root.append(block.element);
    this.#blocks = found;
    this.#text = text;
  }

  // The old block's element, if it has not changed.
  #same(old, block, text) {
    const is_same = old?.type === block.type && this.#text.slice(old.start, old.end) === text.slice(block.start, block.end);
    return is_same ? old.element : null;
  }

  // A long listing that grows takes new text behind the old one.
  #extended(old, block) {
    if (old?.type !== "code" || block.type !== "code" || block.language !== old.language || !block.text.startsWith(old.text)) return null;
    const node = old.element.querySelector("pre code").lastChild;
    if (!node) return null;
    node.appendData(block.text.slice(old.text.length));
    return old.element;
  }
}
