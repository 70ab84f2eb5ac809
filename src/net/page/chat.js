// The conversation that is shown: its messages, and the answer that is being written.
import { announce, at_frames, by_id } from "./dom.js";
import * as tree from "./conversation.js";
import { MessageView } from "./message.js";
import { generate, request_body } from "./reply.js";

export class Chat {
  #conversation = tree.create();
  #views = new Map();  // by the ids of their nodes
  #running = null;     // {node, stop: AbortController}
  #settings; #changed; #messages = by_id("messages");

  // settings() gives those of now; changed(conversation, is_running) is told of all that should be kept.
  constructor(settings, changed) {
    this.#settings = settings;
    this.#changed = changed;
  }

  get conversation() { return this.#conversation; }
  get is_running() { return this.#running !== null; }

  show(conversation) {
    this.stop();
    this.#conversation = conversation;
    this.#views.clear();
    this.#draw();
    this.#messages.scrollTop = this.#messages.scrollHeight;
  }

  send(text, images) {
    const last = tree.path(this.#conversation).at(-1);
    const asked = tree.append(this.#conversation, last?.id ?? null, { role: "user", content: text, images });
    return this.#answer(asked);
  }

  stop() { this.#running?.stop.abort(); }

  async #answer(asked) {
    if (this.#running) return;
    let body;
    try {
      body = request_body(tree.messages(tree.path_to(this.#conversation, asked), this.#settings().system), this.#settings());
    } catch (error) {
      announce(`Settings: ${error.message}`);
      const node = tree.append(this.#conversation, asked.id, { role: "assistant", error: `In the settings: ${error.message}` });
      this.#views.delete(node.id);
      return this.#draw();
    }
    await this.#run(tree.append(this.#conversation, asked.id, { role: "assistant" }), body);
  }

  async #run(node, body) {
    const conversation = this.#conversation;
    this.#running = { node, stop: new AbortController() };
    this.#draw();
    this.#changed(conversation, true);
    this.#to_end(true);
    const paint = at_frames(() => {
      if (this.#conversation !== conversation) return;
      const was_at_end = this.#is_at_end();
      this.#views.get(node.id)?.update(this.#running?.node === node);
      this.#to_end(was_at_end);
    });
    await generate(node, body, this.#running.stop.signal, paint);
    this.#running = null;
    conversation.updated = Date.now();
    if (this.#conversation === conversation) {
      const was_at_end = this.#is_at_end();
      this.#draw();
      this.#to_end(was_at_end);
    }
    announce(node.error ? `The answer failed: ${node.error}` : "The answer is finished.");
    this.#changed(conversation, false);
  }

  #is_at_end() { return this.#messages.scrollHeight - this.#messages.scrollTop - this.#messages.clientHeight < 80; }
  #to_end(wanted) { if (wanted) this.#messages.scrollTop = this.#messages.scrollHeight; }

  // Views of messages that stay are kept as they are.
  #draw() {
    const shown = tree.path(this.#conversation).map((node) => {
      let view = this.#views.get(node.id);
      if (!view) this.#views.set(node.id, view = new MessageView(node, this.#actions));
      view.update(this.#running?.node === node);
      return view.root;
    });
    this.#messages.replaceChildren(...shown);
  }

  #actions = {
    place: (node) => {
      const all = tree.siblings(this.#conversation, node);
      return { index: all.indexOf(node), count: all.length };
    },
    open_calls: (node) => tree.open_calls(this.#conversation, node),
    choose: (node, step) => {
      const all = tree.siblings(this.#conversation, node);
      tree.choose(this.#conversation, all[all.indexOf(node) + step]);
      this.#draw();
      this.#changed(this.#conversation, this.is_running);
    },
    edit: (node, text) => {
      if (this.#running) return;
      this.#answer(tree.append(this.#conversation, node.parent, { role: "user", content: text, images: node.images }));
    },
    again: (node) => this.#answer(this.#conversation.nodes[node.parent]),
    // The answer goes on once each of its calls has a result.
    result: (node, call, text) => {
      if (this.#running) return;
      const last = tree.path(this.#conversation).at(-1);
      const given = tree.append(this.#conversation, last.id, { role: "tool", content: text, tool_call_id: call.id });
      if (tree.open_calls(this.#conversation, node).length > 0) return this.#draw();
      this.#answer(given);
    },
  };
}
