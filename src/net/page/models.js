// The server's models and adapters, with buttons that load and unload them where it has others than those of its start.
import { request } from "./api.js";
import { announce, button, element } from "./dom.js";

const kActions = { unloaded: ["Load", "v1/models/load"], loaded: ["Unload", "v1/models/unload"], sleeping: ["Load", "v1/models/load"] };
const kUnits = ["bytes", "KiB", "MiB", "GiB"];

function size(bytes) {
  const unit = Math.min(kUnits.length - 1, Math.floor(Math.log2(Math.max(1, bytes)) / 10));
  return `${(bytes / 1024 ** unit).toFixed(unit > 1 ? 1 : 0)} ${kUnits[unit]}`;
}

function facts_of({ meta, parent, status }) {
  const facts = [];
  if (meta) facts.push(meta.architecture, `${Math.round(meta.n_params / 1e6).toLocaleString("en")} million parameters`);
  if (parent) facts.push(`on ${parent}`);
  if (status) facts.push(status.value, status.memory_bytes ? `${size(status.memory_bytes)} of memory` : `${size(status.file_bytes)} on disk`);
  if (status?.failure) facts.push(status.failure);
  return facts.join(", ");
}

export class Models {
  #list = element("ul", { class: "models" });
  #fault = element("p", { class: "error", role: "alert" });
  root = element("div", {}, this.#list, this.#fault);
  #shown = "";

  // What /v1/models says. The list is made anew only when it says something else, so that a button keeps its focus.
  show(models) {
    const shown = JSON.stringify(models);
    if (shown === this.#shown) return;
    this.#shown = shown;
    this.#list.replaceChildren(...models.map((model) => this.#item(model)));
  }

  #item(model) {
    const [label, path] = kActions[model.status?.value] ?? [];
    const act = label ? button(label, (event) => this.#act(event.target, model.id, label, path), { "aria-label": `${label} ${model.id}` }) : null;
    return element("li", {}, element("code", {}, model.id), ` ${facts_of(model)} `, act);
  }

  async #act(pressed, id, label, path) {
    pressed.disabled = true;
    this.#fault.textContent = "";
    try {
      await request(path, { body: { model: id } });
      announce(`${label}ed ${id}.`);
    } catch (error) {
      this.#fault.textContent = error.message;
    }
    pressed.disabled = false;
  }
}
