// A picture of the KV pool: squares, each for as many blocks as fit, by what the blocks hold.
import { element, svg } from "./dom.js";

const kColumns = 40;
const kRows = 10;
const kStates = [["held", "held by running sequences"], ["cached", "cached: nobody's, and can be found again"], ["empty", "empty"]];

export class PoolPicture {
  #cells = [];
  #text = {};

  constructor() {
    for (let i = 0; i < kColumns * kRows; ++i)
      this.#cells.push(svg("rect", { x: (i % kColumns) * 6, y: Math.floor(i / kColumns) * 6, width: 5, height: 5, class: "empty" }));
    const legend = kStates.map(([state, meaning]) => {
      this.#text[state] = element("strong", {}, "–");
      return element("li", {}, svg("svg", { viewBox: "0 0 5 5", class: "key", "aria-hidden": "true" }, svg("rect", { width: 5, height: 5, class: state })),
        " ", this.#text[state], ` ${meaning}`);
    });
    this.root = element("div", { class: "pool" },
      svg("svg", { viewBox: `0 0 ${kColumns * 6} ${kRows * 6}`, "aria-hidden": "true" }, ...this.#cells), element("ul", {}, ...legend));
  }

  // Blocks by state, and all of them. What is there at all has a square.
  show(pool) {
    const squares = (count) => (count > 0 ? Math.max(1, Math.round((count / pool.all) * this.#cells.length)) : 0);
    const held = squares(pool.held);
    const cached = held + squares(pool.cached);
    this.#cells.forEach((cell, i) => cell.setAttribute("class", i < held ? "held" : i < cached ? "cached" : "empty"));
    for (const [state] of kStates) this.#text[state].textContent = pool[state].toLocaleString("en");
  }
}
