// A line of the last readings, with the newest value as text beside it.
import { element, svg } from "./dom.js";

const kPoints = 120;
const kWidth = 240;
const kHeight = 48;

export class Chart {
  #values = [];
  #line = svg("polyline", { class: "line" });
  #most = element("span", { class: "most" });
  #now = element("strong", {}, "–");

  // format(value) → text
  constructor(title, format) {
    this.format = format;
    this.root = element("figure", { class: "chart" },
      element("figcaption", {}, `${title} `, this.#now, this.#most),
      svg("svg", { viewBox: `0 0 ${kWidth} ${kHeight}`, preserveAspectRatio: "none", "aria-hidden": "true" }, this.#line));
  }

  add(value) {
    this.#values.push(value ?? 0);
    if (this.#values.length > kPoints) this.#values.shift();
    const most = Math.max(...this.#values, 1e-9);
    const x = (i) => kWidth - (this.#values.length - 1 - i) * (kWidth / (kPoints - 1));
    const y = (each) => kHeight - 2 - (each / most) * (kHeight - 4);
    this.#line.setAttribute("points", this.#values.map((each, i) => `${x(i).toFixed(1)},${y(each).toFixed(1)}`).join(" "));
    this.#now.textContent = value === null ? "–" : this.format(value);
    this.#most.textContent = ` most ${this.format(Math.max(...this.#values))}`;
  }
}
