// A plain HTTP client of the API, for what the SDK hides.
import assert from "node:assert/strict";
import net from "node:net";

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

// All figures of /metrics, by name with its labels: `braid_requests_refused_total{reason="invalid"}`.
export async function metrics(url, options = {}) {
  const text = await (await fetch(`${url}/metrics`, options)).text();
  const lines = text.split("\n").filter((line) => line && !line.startsWith("#"));
  return new Map(lines.map((line) => [line.slice(0, line.lastIndexOf(" ")), Number(line.slice(line.lastIndexOf(" ") + 1))]));
}

// A figure of /metrics; of several with this name the first.
export async function metric(url, name) {
  for (const [key, value] of await metrics(url)) if (key === name || key.startsWith(`${name}{`)) return value;
  assert.fail(`no metric ${name}`);
}

// Asks again until `condition` holds; fails after `seconds`.
export async function eventually(what, condition, seconds = 120) {
  const end = Date.now() + seconds * 1000;
  while (!(await condition())) {
    assert.ok(Date.now() < end, `not within ${seconds} s: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

// What ended requests held is given back.
export async function frees_everything(url, options = {}) {
  let left;
  const is_free = async () => {
    const now = await metrics(url, options);
    left = ["braid_sequences_waiting", "braid_sequences_prefilling", "braid_sequences_decoding", "braid_sequences_stalled", "braid_sequences_parked", "braid_open_streams"]
      .map((name) => [name, now.get(name) ?? 0]).filter(([, count]) => count !== 0);
    if (now.get("braid_kv_blocks_free") !== now.get("braid_kv_blocks_total")) left.push(["kv_blocks", now.get("braid_kv_blocks_total") - now.get("braid_kv_blocks_free")]);
    if (now.get("braid_active_requests") !== 1) left.push(["braid_active_requests", now.get("braid_active_requests") - 1]);  // this one
    return left.length === 0;
  };
  await eventually("nothing runs and all KV blocks are free", is_free).catch((error) => assert.fail(`${error.message}: ${JSON.stringify(left)}`));
}

// A connection that sends what it is told and shows when it was answered; `leave` is how it ends.
export class RawConnection {
  received = "";
  constructor(url) {
    this.socket = net.connect({ port: Number(new URL(url).port), host: "127.0.0.1" });
    this.socket.on("data", (data) => { this.received = (this.received + data).slice(-65536); });
    this.socket.on("error", () => {});
    this.closed = new Promise((resolve) => this.socket.on("close", resolve));
  }
  post(path, body, headers = "") {
    const text = typeof body === "string" ? body : JSON.stringify(body);
    this.socket.write(`POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n${headers}Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`);
  }
  leave(how) {
    if (how === "RST") this.socket.resetAndDestroy();
    else if (how === "half-close") this.socket.end();
    else this.socket.destroy();
  }
}
