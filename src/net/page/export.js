// A conversation as a file: all of it as JSON, or the branch that is shown as Markdown.
import { path } from "./conversation.js";
import { element } from "./dom.js";

function save(name, type, text) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  element("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);  // the download has begun by then
}

const file_name = (conversation) => conversation.title.replace(/[^\p{L}\p{N}]+/gu, "-").slice(0, 40) || "conversation";

export function to_markdown(conversation) {
  const names = { user: "You", assistant: "Answer", tool: "Result of a tool" };
  return path(conversation).map((node) => {
    const calls = (node.calls ?? []).map((call) => `\n\n\`${call.name}(${call.arguments})\``).join("");
    return `## ${names[node.role]}\n\n${node.content}${calls}\n`;
  }).join("\n");
}

export const save_json = (conversation) => save(`${file_name(conversation)}.json`, "application/json", JSON.stringify(conversation, null, 1));
export const save_markdown = (conversation) => save(`${file_name(conversation)}.md`, "text/markdown", to_markdown(conversation));
