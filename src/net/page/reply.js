// One answer: the request for it, and what its stream adds to a message.
import { events, request } from "./api.js";

// The request's body for these messages. Settings that are left empty are the server's.
export function request_body(messages, settings) {
  const body = { model: settings.model || undefined, messages, stream: true, stream_options: { include_usage: true } };
  for (const name of ["temperature", "top_p", "top_k", "min_p", "max_tokens", "seed", "frequency_penalty", "presence_penalty"])
    if (settings[name] !== "" && settings[name] !== undefined) body[name] = Number(settings[name]);
  if (settings.stop) body.stop = settings.stop.split("\n").filter(Boolean);
  if (settings.tools) body.tools = JSON.parse(settings.tools);
  if (settings.thinking) body.chat_template_kwargs = { enable_thinking: settings.thinking === "on" };
  if (settings.schema)
    body.response_format = { type: "json_schema", json_schema: { name: "answer", schema: JSON.parse(settings.schema), strict: true } };
  if (settings.probabilities) Object.assign(body, { logprobs: true, top_logprobs: 5 });
  return body;
}

function apply_call(node, delta) {
  node.calls ??= [];
  const call = node.calls[delta.index] ??= { id: "", name: "", arguments: "" };
  if (delta.id) call.id = delta.id;
  call.name += delta.function?.name ?? "";
  call.arguments += delta.function?.arguments ?? "";
}

const token_of = ({ token, logprob, top_logprobs = [] }) =>
  ({ token, logprob, others: top_logprobs.map((other) => [other.token, other.logprob]) });

export function apply(node, chunk) {
  if (chunk.error) throw new Error(chunk.error.message ?? String(chunk.error));
  if (chunk.usage) node.usage = chunk.usage;
  const choice = chunk.choices?.[0];
  if (!choice) return;
  const { content, reasoning_content, tool_calls } = choice.delta ?? {};
  if (content) node.content += content;
  if (reasoning_content) node.reasoning = (node.reasoning ?? "") + reasoning_content;
  for (const call of tool_calls ?? []) apply_call(node, call);
  if (choice.logprobs?.content) (node.tokens ??= []).push(...choice.logprobs.content.map(token_of));
  if (choice.finish_reason) node.finish = choice.finish_reason;
}

// Fills `node` until the answer ends, is stopped by `signal`, or fails: then node.error says why. Never throws.
export async function generate(node, body, signal, on_change) {
  const begin = performance.now();
  try {
    const response = await request("v1/chat/completions", { body, signal });
    for await (const chunk of events(response)) {
      apply(node, chunk);
      node.first_ms ??= performance.now() - begin;
      on_change();
    }
    if (!node.finish) node.error = "The stream ended before the answer did.";
  } catch (error) {
    if (signal.aborted) node.finish = "stopped";
    else node.error = error.message;
  }
  node.whole_ms = performance.now() - begin;
  on_change();
}
