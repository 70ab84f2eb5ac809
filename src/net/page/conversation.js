// A conversation is a tree of messages: an edit or another answer is a branch beside the first one. Plain data, which the browser keeps.

const kTitleLength = 60;

export const new_id = () => `${Date.now().toString(36)}${Math.random().toString(36).slice(2, 8)}`;

export const create = () => ({ id: new_id(), title: "", updated: Date.now(), nodes: {}, chosen: {} });

const key_of = (parent) => parent ?? "";

// Adds a message behind `parent` (null: at the beginning), on the path that is shown.
export function append(conversation, parent, message) {
  const node = { id: new_id(), parent, content: "", ...message };
  conversation.nodes[node.id] = node;
  conversation.chosen[key_of(parent)] = node.id;
  conversation.updated = Date.now();
  if (!conversation.title && node.role === "user") conversation.title = node.content.trim().slice(0, kTitleLength);
  return node;
}

export function choose(conversation, node) { conversation.chosen[key_of(node.parent)] = node.id; }

export const siblings = (conversation, node) => Object.values(conversation.nodes).filter((each) => each.parent === node.parent);

// The messages that are shown, from the first to the last.
export function path(conversation) {
  const shown = [];
  for (let id = conversation.chosen[""]; id; id = conversation.chosen[id]) shown.push(conversation.nodes[id]);
  return shown;
}

export function path_to(conversation, node) {
  const before = [];
  for (let each = node; each; each = conversation.nodes[each.parent]) before.unshift(each);
  return before;
}

const content_of = (node) => {
  if (!node.images?.length) return node.content;
  return [{ type: "text", text: node.content }, ...node.images.map((url) => ({ type: "image_url", image_url: { url } }))];
};

function message_of(node) {
  const message = { role: node.role, content: content_of(node) };
  if (node.role === "tool") message.tool_call_id = node.tool_call_id;
  if (node.calls?.length)
    message.tool_calls = node.calls.map((call) => ({ id: call.id, type: "function", function: { name: call.name, arguments: call.arguments } }));
  return message;
}

// As the API has them; answers that failed before they said anything are left out.
export const messages = (nodes, system) => [
  ...(system ? [{ role: "system", content: system }] : []),
  ...nodes.filter((node) => node.role !== "assistant" || node.content || node.calls?.length).map(message_of),
];

// Calls of this answer that have no result on the path behind it.
export function open_calls(conversation, node) {
  const answered = new Set(path(conversation).filter((each) => each.role === "tool").map((each) => each.tool_call_id));
  return (node.calls ?? []).filter((call) => !answered.has(call.id));
}
