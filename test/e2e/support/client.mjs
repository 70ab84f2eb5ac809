// A plain HTTP client of the API, for what the SDK hides.
import assert from "node:assert/strict";

export const story = "Tell me a story about a brave fox and a lost kite.";

export function post(url, body, options = {}) {
  return fetch(url, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body), ...options });
}

// The events of an SSE answer: parsed `data`, "[DONE]" as that string; comments are left out.
export async function* events(response) {
  const decoder = new TextDecoder();
  let buffer = "";
  for await (const bytes of response.body) {
    buffer += decoder.decode(bytes, { stream: true });
    const parts = buffer.split("\n\n");
    buffer = parts.pop();
    for (const part of parts) {
      if (part.startsWith(":")) continue;
      assert.ok(part.startsWith("data: "), `no SSE event: ${JSON.stringify(part)}`);
      const data = part.slice(6);
      yield data === "[DONE]" ? data : JSON.parse(data);
    }
  }
  assert.equal(buffer, "", "the stream ended inside an event");
}

// A whole streamed completion: text, token ids, how it ended.
export async function collect(response) {
  assert.equal(response.status, 200);
  assert.match(response.headers.get("content-type"), /^text\/event-stream/);
  const answer = { text: "", tokens: [], finish: null, error: null, done: false };
  for await (const event of events(response)) {
    assert.ok(!answer.done && !answer.error, "an event after the last one");
    if (event === "[DONE]") answer.done = true;
    else if (event.error) answer.error = event.error;
    else for (const choice of event.choices) {
      answer.text += choice.text ?? choice.delta?.content ?? "";
      answer.tokens.push(...(choice.token_ids ?? []));
      answer.finish = choice.finish_reason ?? answer.finish;
    }
  }
  return answer;
}

// A figure of /metrics.
export async function metric(url, name) {
  const text = await (await fetch(`${url}/metrics`)).text();
  const line = text.split("\n").find((candidate) => candidate.startsWith(`${name} `) || candidate.startsWith(`${name}{`));
  assert.ok(line, `no metric ${name} in:\n${text}`);
  return Number(line.slice(line.lastIndexOf(" ") + 1));
}

// Asks again until `condition` holds; fails after `seconds`.
export async function eventually(what, condition, seconds = 30) {
  const end = Date.now() + seconds * 1000;
  while (!(await condition())) {
    assert.ok(Date.now() < end, `not within ${seconds} s: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

// What ended requests held is given back.
export async function frees_everything(url) {
  await eventually("no sequence runs and all KV blocks are free", async () =>
    (await metric(url, "sequences_decoding")) === 0 && (await metric(url, "sequences_prefilling")) === 0 &&
    (await metric(url, "kv_blocks_free")) === (await metric(url, "kv_blocks_total")));
}
