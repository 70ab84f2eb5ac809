// The settings of answers: a form, kept in the browser.
import { by_id, element } from "./dom.js";
import { get_json } from "./api.js";

const kKept = "braid.settings";

const kNumbers = [
  ["temperature", "Temperature", 0, 2, 0.1], ["top_p", "Top p", 0, 1, 0.05], ["top_k", "Top k", 0, 1000, 1], ["min_p", "Min p", 0, 1, 0.01],
  ["max_tokens", "Most tokens", 1, 1000000, 1], ["seed", "Seed", 0, 4294967295, 1],
  ["frequency_penalty", "Frequency penalty", -2, 2, 0.1], ["presence_penalty", "Presence penalty", -2, 2, 0.1],
];

function json_fault(text) {
  if (!text.trim()) return "";
  try {
    JSON.parse(text);
    return "";
  } catch (error) {
    return error.message;
  }
}

export class Settings {
  #values; #fields = {}; #on_model;
  #unloaded = new Set();  // ids of models that are not in memory

  // on_model(id, is_loaded) is told of each choice.
  constructor(on_model) {
    this.#on_model = on_model;
    try {
      this.#values = JSON.parse(localStorage.getItem(kKept)) ?? {};
    } catch {
      this.#values = {};
    }
    this.#build();
  }

  get values() { return this.#values; }

  // Fills the list of models and adapters, but for networks, which know no text. One that is not loaded is loaded by its first request.
  async load_models() {
    const models = (await get_json("v1/models")).data.filter((model) => model.meta?.architecture !== "braid-net");
    const select = this.#fields.model;
    this.#unloaded = new Set(models.filter((model) => model.status && model.status.value !== "loaded").map((model) => model.id));
    const name = (model) => (this.#unloaded.has(model.id) ? `${model.id} (not loaded)` : model.id);
    select.replaceChildren(...models.map((model) => element("option", { value: model.id }, name(model))));
    if (models.some((model) => model.id === this.#values.model)) select.value = this.#values.model;
    this.#set("model", select.value);
    this.#on_model(select.value, !this.#unloaded.has(select.value));
  }

  #set(name, value) {
    this.#values[name] = value;
    localStorage.setItem(kKept, JSON.stringify(this.#values));
  }

  #labelled(name, label, field, note = null) {
    field.id = `setting-${name}`;
    this.#fields[name] = field;
    if (field.type === "checkbox") field.checked = Boolean(this.#values[name]);
    else field.value = this.#values[name] ?? "";
    field.addEventListener("input", () => {
      if (!field.checkValidity()) return;
      this.#set(name, field.type === "checkbox" ? field.checked : field.value);
      if (name === "model") this.#on_model(field.value, !this.#unloaded.has(field.value));
    });
    const parts = [element("span", {}, label), field];
    if (note) parts.push(note);
    return element("label", { class: field.type === "checkbox" ? "row" : "" }, ...(field.type === "checkbox" ? parts.reverse() : parts));
  }

  #text(name, label, rows, placeholder = "") { return this.#labelled(name, label, element("textarea", { rows, placeholder })); }

  // A field of JSON that says what is wrong with it.
  #json(name, label, placeholder) {
    const fault = element("span", { class: "error", role: "alert" });
    const field = element("textarea", { rows: 4, placeholder, spellcheck: "false", class: "code-field" });
    const shown = this.#labelled(name, label, field, fault);
    const check = () => {
      fault.textContent = json_fault(field.value);
      field.setAttribute("aria-invalid", String(fault.textContent !== ""));
    };
    field.addEventListener("input", check);
    check();
    return shown;
  }

  #build() {
    const numbers = kNumbers.map(([name, label, min, max, step]) =>
      this.#labelled(name, label, element("input", { type: "number", min, max, step, placeholder: "default" })));
    const thinking = element("select", {}, element("option", { value: "" }, "as the model does"), element("option", { value: "on" }, "on"),
      element("option", { value: "off" }, "off"));
    by_id("settings").append(
      element("h2", {}, "Settings"),
      this.#labelled("model", "Model", element("select")),
      this.#text("system", "System prompt", 4),
      this.#labelled("thinking", "Thinking", thinking),
      this.#labelled("probabilities", "Token probabilities", element("input", { type: "checkbox" })),
      element("details", {}, element("summary", {}, "Parameters"), element("div", { class: "numbers" }, ...numbers),
        this.#text("stop", "Stop texts, one a line", 2)),
      element("details", {}, element("summary", {}, "JSON schema of answers"),
        this.#json("schema", "Schema", '{"type": "object", "properties": {…}}')),
      element("details", {}, element("summary", {}, "Tools"),
        this.#json("tools", "As the API has them", '[{"type": "function", "function": {"name": …}}]')));
  }
}
