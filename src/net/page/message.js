// One message of a conversation, with what can be done with it.
import { button, element } from "./dom.js";
import { MarkdownView } from "./markdown_view.js";
import { token_view } from "./tokens.js";

const kNames = { user: "You", assistant: "Answer", tool: "Result of a tool" };

function pretty(json) {
  try {
    return JSON.stringify(JSON.parse(json), null, 2);
  } catch {
    return json;
  }
}

// What a call was given, and a field for its result while it has none.
function call_element(call, wants_result, on_result) {
  const shown = element("section", { class: "call", "aria-label": `Call of ${call.name}` },
    element("h4", {}, "Calls ", element("code", {}, call.name)),
    element("pre", { tabindex: "0", "aria-label": "Arguments" }, pretty(call.arguments)));
  if (!wants_result) return shown;
  const field = element("textarea", { rows: "2", "aria-label": `Result of ${call.name}` });
  shown.append(element("label", {}, "Its result", field), button("Give result", () => on_result(call, field.value)));
  return shown;
}

function footer_text(node) {
  const parts = [];
  if (node.usage) parts.push(`${node.usage.completion_tokens} tokens`);
  const seconds = (node.whole_ms - node.first_ms) / 1000;
  if (node.usage?.completion_tokens > 1 && seconds > 0.05) parts.push(`${((node.usage.completion_tokens - 1) / seconds).toFixed(1)} tokens/s`);
  if (node.first_ms !== undefined) parts.push(`first after ${Math.round(node.first_ms)} ms`);
  if (node.usage?.prompt_tokens_details?.cached_tokens) parts.push(`${node.usage.prompt_tokens_details.cached_tokens} from the cache`);
  if (node.finish === "length") parts.push("cut off by the limit");
  if (node.finish === "stopped") parts.push("stopped");
  return parts.join(" · ");
}

export class MessageView {
  #node; #actions; #markdown = null; #plain = null; #thinking = null; #thoughts = null; #calls; #footer; #tools; #wants_tokens = false;

  // actions: {edit(node, text), again(node), choose(node, step), result(node, call, text), place(node) → {index, count}, open_calls(node)}
  constructor(node, actions) {
    this.#node = node;
    this.#actions = actions;
    this.#calls = element("div");
    this.#footer = element("p", { class: "footer" });
    this.#tools = element("div", { class: "buttons message-buttons" });
    this.body = element("div", { class: "body" });
    this.root = element("article", { class: `message ${node.role}`, "data-id": node.id, "aria-label": kNames[node.role] },
      element("h3", {}, kNames[node.role]), this.body, this.#calls, this.#footer, this.#tools);
    this.update(false);
  }

  // While it runs, only what grows is touched.
  update(is_running) {
    this.root.setAttribute("aria-busy", String(is_running));
    if (this.#node.role === "assistant") this.#show_answer(is_running);
    else this.#show_plain();
    this.#show_calls(is_running);
    this.#footer.textContent = footer_text(this.#node);
    if (this.#node.error) this.#footer.append(element("strong", { class: "error", role: "alert" }, this.#node.error));
    if (is_running) this.#tools.replaceChildren();
    else this.#show_buttons();
  }

  #show_plain() {
    const images = (this.#node.images ?? []).map((url, i) => element("img", { src: url, alt: `Attached image ${i + 1}` }));
    this.body.replaceChildren(element("p", { class: "plain" }, this.#node.content), ...images);
  }

  #show_answer(is_running) {
    this.#show_thinking(is_running);
    if (this.#wants_tokens && this.#node.tokens?.length) return this.#replace_text(token_view(this.#node.tokens));
    this.#markdown ??= new MarkdownView();
    this.#markdown.update(this.#node.content);
    this.#replace_text(this.#markdown.root);
  }

  #replace_text(shown) {
    if (this.#plain === shown) return;
    this.#plain?.remove();
    this.#plain = shown;
    this.body.append(shown);
  }

  // Folded; its head tells whether it goes on.
  #show_thinking(is_running) {
    if (!this.#node.reasoning) return;
    if (!this.#thinking) {
      this.#thoughts = new MarkdownView();
      this.#thinking = element("details", { class: "thinking", toggle: () => this.#thoughts.update(this.#node.reasoning) },
        element("summary", {}), this.#thoughts.root);
      this.body.prepend(this.#thinking);
    }
    this.#thinking.firstChild.textContent = is_running && !this.#node.content ? "Thinking…" : "Thoughts";
    if (this.#thinking.open) this.#thoughts.update(this.#node.reasoning);
  }

  #show_calls(is_running) {
    if (!this.#node.calls?.length) return;
    const open = is_running ? [] : this.#actions.open_calls(this.#node);
    this.#calls.replaceChildren(...this.#node.calls.filter(Boolean).map((call) =>
      call_element(call, open.includes(call), (of, text) => this.#actions.result(this.#node, of, text))));
  }

  #show_buttons() {
    const node = this.#node;
    const { index, count } = this.#actions.place(node);
    const branches = count < 2 ? [] : [
      button("‹", () => this.#actions.choose(node, -1), { "aria-label": "Earlier branch", disabled: index === 0 }),
      element("span", { class: "place" }, `${index + 1} of ${count}`),
      button("›", () => this.#actions.choose(node, 1), { "aria-label": "Later branch", disabled: index + 1 === count })];
    const own = node.role === "user" ? [button("Edit", () => this.#edit())] : [];
    if (node.role === "assistant") own.push(button("Again", () => this.#actions.again(node)));
    if (node.tokens?.length) own.push(button(this.#wants_tokens ? "Text" : "Probabilities", () => {
      this.#wants_tokens = !this.#wants_tokens;
      this.update(false);
    }));
    this.#tools.replaceChildren(...branches, button("Copy", () => navigator.clipboard.writeText(node.content)), ...own);
  }

  #edit() {
    const field = element("textarea", { rows: "4", "aria-label": "Edited message" });
    field.value = this.#node.content;
    this.body.replaceChildren(field);
    this.#tools.replaceChildren(button("Send as a branch", () => this.#actions.edit(this.#node, field.value), { class: "first" }),
      button("Cancel", () => this.update(false)));
    field.focus();
  }
}
