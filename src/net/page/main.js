// Puts the page together: views, the list of conversations, the key.
import { get_json, keep_key, key, when_key_is_wanted } from "./api.js";
import { Chat } from "./chat.js";
import { Composer } from "./composer.js";
import { create } from "./conversation.js";
import { announce, button, by_id, element } from "./dom.js";
import { EngineRoom } from "./engine_room.js";
import { save_json, save_markdown } from "./export.js";
import { Settings } from "./settings.js";
import { open_store } from "./store.js";

const store = await open_store();
const engine_room = new EngineRoom();
const settings = new Settings(on_model);
const composer = new Composer((text, images) => chat.send(text, images), () => chat.stop());
const chat = new Chat(() => settings.values, on_changed);

// Whether the model sees images decides what may be attached.
async function on_model(id, is_loaded) {
  const props = is_loaded ? await get_json(`props?model=${encodeURIComponent(id)}`).catch(() => ({})) : {};
  composer.set_sees(Boolean(props.modalities?.vision));
}

async function on_changed(conversation, is_running) {
  composer.set_running(is_running);
  await store.put(conversation);
  await list_conversations();
}

function show(conversation) {
  chat.show(conversation);
  close_panels();
  list_conversations();
  composer.focus();
}

function conversation_item(conversation) {
  const is_shown = conversation.id === chat.conversation.id;
  const title = conversation.title || "Untitled";
  const remove = async () => {
    await store.remove(conversation.id);
    if (is_shown) show(create());
    else list_conversations();
    announce("Conversation deleted.");
  };
  const tools = is_shown ? element("div", { class: "buttons" },
    button("As Markdown", () => save_markdown(conversation)), button("As JSON", () => save_json(conversation)),
    button("Delete", remove, { "aria-label": `Delete ${title}` })) : null;
  return element("li", {}, button(title, () => show(conversation), { class: "title", "aria-current": is_shown ? "true" : null }), tools);
}

async function list_conversations() {
  const all = (await store.all()).map((each) => (each.id === chat.conversation.id ? chat.conversation : each));
  all.sort((a, b) => b.updated - a.updated);
  by_id("conversation-list").replaceChildren(...all.map(conversation_item));
}

// The address says which view is open.
function open_view() {
  const is_engine = location.hash === "#engine";
  by_id("chat-view").hidden = is_engine;
  by_id("to-chat").setAttribute("aria-current", is_engine ? "false" : "page");
  by_id("to-engine").setAttribute("aria-current", is_engine ? "page" : "false");
  if (is_engine) engine_room.open();
  else engine_room.close();
}

// On a narrow screen the two panels open over the chat.
const panels = ["conversations", "settings"];
function close_panels() {
  for (const name of panels) {
    by_id(name).classList.remove("open");
    by_id(`toggle-${name}`).setAttribute("aria-expanded", "false");
  }
}
for (const name of panels) {
  by_id(`toggle-${name}`).addEventListener("click", () => {
    const opens = !by_id(name).classList.contains("open");
    close_panels();
    by_id(name).classList.toggle("open", opens);
    by_id(`toggle-${name}`).setAttribute("aria-expanded", String(opens));
  });
}

function ask_for_key(why) {
  if (by_id("key-dialog").open) return;
  by_id("key-why").textContent = why;
  by_id("key-field").value = key();
  by_id("key-dialog").showModal();
}
by_id("key-button").addEventListener("click", () => ask_for_key("Requests carry it as a bearer token. It stays in this browser."));
when_key_is_wanted(() => ask_for_key("This server wants a key, and the one that was sent is none of its own. It stays in this browser."));
by_id("key-dialog").addEventListener("close", () => {
  if (by_id("key-dialog").returnValue !== "keep") return;
  keep_key(by_id("key-field").value.trim());
  load_models();
});
by_id("key-field").addEventListener("keydown", (event) => {
  if (event.key !== "Enter") return;
  event.preventDefault();
  by_id("key-dialog").close("keep");
});

async function load_models() {
  try {
    await settings.load_models();
    by_id("composer-note").textContent = "";
  } catch (error) {
    by_id("composer-note").textContent = `No models: ${error.message}`;
  }
}

by_id("new-conversation").addEventListener("click", () => show(create()));
window.addEventListener("hashchange", open_view);
open_view();
await Promise.all([load_models(), list_conversations()]);
document.documentElement.dataset.ready = "true";
