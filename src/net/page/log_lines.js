// The last lines of the server's log, which it shows to administrators.
import { get_json } from "./api.js";
import { element } from "./dom.js";

const kMostLines = 500;

export class LogLines {
  #last = 0;  // the number of the last line shown
  #refused = false;
  #lines = element("pre", { class: "log", tabindex: "0", role: "region", "aria-label": "Log" });
  #note = element("p", { class: "footer" });
  root = element("div", {}, this.#lines, this.#note);

  // Whether it has been refused is asked once: a key does not become an administrator's. opened() asks again.
  opened() { this.#refused = false; }

  async read() {
    if (this.#refused) return;
    try {
      this.#show(await get_json(`v1/admin/log?after=${this.#last}&limit=${kMostLines}`));
      this.#note.textContent = "";
    } catch (error) {
      this.#refused = error.status === 403 || error.status === 404;
      this.#note.textContent = error.status === 403 ? "Lines of the log are shown to administrators alone." : error.message;
    }
  }

  #show({ first, lines }) {
    const last = first + lines.length - 1;
    if (first > this.#last + 1 || last < this.#last) this.#lines.replaceChildren();  // some were lost, or it is another server
    if (last < this.#last) {
      this.#last = 0;
      return;
    }
    const follows = this.#lines.scrollTop + this.#lines.clientHeight >= this.#lines.scrollHeight - 4;
    this.#lines.append(...lines.map((line) => element("span", {}, `${line}\n`)));
    while (this.#lines.childElementCount > kMostLines) this.#lines.firstChild.remove();
    this.#last = last;
    if (follows) this.#lines.scrollTop = this.#lines.scrollHeight;
  }
}
