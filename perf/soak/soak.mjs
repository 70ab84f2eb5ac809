// A bounded storm on one server, directly and through nginx: answers of all lengths, clients that leave at any moment, slow readers,
// malformed requests, API keys that come and go. At the end nothing is left of it: no block, no request, no memory; and every answer
// that came to its end is the one that the same request gets alone.
//   BRAID_BINARY=build/release/braid BRAID_NGINX=/usr/sbin/nginx test/e2e/node_modules/.bin/node perf/soak/soak.mjs
//     --seconds 1200   how long
//     --clients 24     at once
//     --seed 1         of what they do
//     --rss            also compare resident memory at the end with the plateau (a release build on an otherwise idle machine)
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import http from "node:http";
import net from "node:net";
import path from "node:path";
import { parseArgs } from "node:util";
import { frees_everything, metrics } from "../../test/e2e/support/client.mjs";
import { nginx, serve, temporaryFolder } from "../../test/e2e/support/processes.mjs";

const { values: options } = parseArgs({ options: {
  seconds: { type: "string", default: "1200" }, clients: { type: "string", default: "24" }, seed: { type: "string", default: "1" },
  rss: { type: "boolean", default: false } } });
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

let state = Number(options.seed) >>> 0;
const random = () => {  // mulberry32
  state = (state + 0x6d2b79f5) >>> 0;
  let t = Math.imul(state ^ (state >>> 15), state | 1);
  t = (t + Math.imul(t ^ (t >>> 7), t | 61)) ^ t;
  return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
};
const below = (limit) => Math.floor(random() * limit);
const one_of = (list) => list[below(list.length)];

const openings = ["Once upon a time", "The little robot", "What is 17 + 25?", "My name is Sam and I live in", "Hello!", "A brave fox"];
const wishes = Array.from({ length: 40 }, (_, i) => ({
  path: "/v1/completions",
  body: {
    prompt: `${openings[i % openings.length]} ${"and then ".repeat((i * 13) % 90)}${i}`, max_tokens: 1 + (i * 7) % 120, ignore_eos: true,
    temperature: i % 2 ? 0.9 : 0, seed: i + 1, top_k: i % 3 ? 0 : 40, return_token_ids: true, priority: i % 5 - 2 },
}));
// Frames of two kilobytes, so that a slow reader's buffers fill.
const wide_wish = { path: "/v1/chat/completions", body: {
  messages: [{ role: "user", content: "Tell me a story about a brave fox." }], max_tokens: 150, ignore_eos: true, temperature: 0, n: 2,
  logprobs: true, top_logprobs: 20, return_token_ids: true } };

// One key stays; the other is replaced every second, and answers that it began go on.
const lasting_key = "sk-soak";
const withKey = (key = lasting_key) => ({ Authorization: `Bearer ${key}` });

class Keys {
  generation = 0;
  constructor(t) { this.file = path.join(temporaryFolder(t), "keys"); this.renew(); }
  get passing() { return `sk-passing-${this.generation}`; }
  renew() {
    ++this.generation;
    writeFileSync(this.file, `lasting ${lasting_key}\npassing ${this.passing}\n`);
  }
}

const tally = {};
const count = (what) => { tally[what] = (tally[what] ?? 0) + 1; };

// One request on a connection of its own. `on_response` may throttle; resolves to what came, or null when the connection broke.
function send(url, { path: target, body }, { key, on_request = () => {}, on_response = () => {} } = {}) {
  return new Promise((resolve) => {
    const request = http.request(url + target, { method: "POST", agent: false, headers: { "Content-Type": "application/json", ...withKey(key) } });
    request.on("error", () => resolve(null));
    request.on("response", (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (piece) => { text += piece; });
      response.on("end", () => resolve({ status: response.statusCode, headers: response.headers, text }));
      response.on("error", () => resolve(null));
      on_response(response);
    });
    on_request(request);
    request.end(JSON.stringify(body));
  });
}

// The tokens of each choice, of a stream or a document; null when it did not come to its end.
function tokens_of(answer, streamed) {
  const events = streamed
    ? answer.text.split("\n\n").filter((event) => event.startsWith("data: {")).map((event) => JSON.parse(event.slice(6)))
    : [JSON.parse(answer.text)];
  if (streamed && !answer.text.endsWith("data: [DONE]\n\n")) return null;
  const choices = [];
  for (const choice of events.flatMap((event) => event.choices ?? [])) (choices[choice.index] ??= []).push(...(choice.token_ids ?? []));
  return choices;
}

class Storm {
  constructor(server, urls, keys) {
    Object.assign(this, { server, urls, keys, solo: new Map(), failures: [] });
  }

  async learn() {
    for (const wish of [...wishes, wide_wish]) {
      const answer = await send(this.server.url, wish);
      assert.equal(answer?.status, 200, answer?.text);
      this.solo.set(wish, tokens_of(answer, false));
    }
  }

  async ask(wish, { streamed = random() < 0.7, ...options } = {}) {
    const answer = await send(one_of(this.urls), { ...wish, body: { ...wish.body, stream: streamed } }, options);
    if (answer?.status === 429) return count("refused: queue full");
    if (options.key && answer?.status === 401) return count("refused: key gone");
    assert.equal(answer?.status, 200, answer?.text ?? "the connection broke");
    assert.deepEqual(tokens_of(answer, streamed), this.solo.get(wish), `not its solo answer: ${JSON.stringify(wish.body)}`);
    count("answered");
  }

  ask_with_passing_key() {
    count("passing key");
    return this.ask(one_of(wishes), { key: this.keys.passing });
  }

  read_slowly() {
    count("slow reader");
    const on_response = async (response) => {
      for (let pauses = 1 + below(4); pauses > 0; --pauses) {
        response.pause();
        await sleep(below(1500));
        response.resume();
        await sleep(below(50));
      }
    };
    return this.ask(wide_wish, { streamed: true, on_response });
  }

  async leave_early() {
    count("left early");
    const wish = one_of([...wishes, wide_wish]);
    const how = one_of([(socket) => socket.destroy(), (socket) => socket.resetAndDestroy(), (socket) => socket.end()]);
    const on_request = async (request) => {
      await sleep(below(2) ? below(20) : below(800));
      if (request.socket) how(request.socket);
      await sleep(100);
      request.destroy();
    };
    await send(one_of(this.urls), { ...wish, body: { ...wish.body, stream: below(2) === 0 } }, { on_request });
  }

  async send_nonsense() {
    count("malformed");
    const body = JSON.stringify(one_of(wishes).body);
    const whole = `POST /v1/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${lasting_key}\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
    const bytes = Buffer.from(one_of([
      () => whole.slice(0, below(whole.length)),
      () => whole.replace("HTTP/1.1", "HTTP/9.9"),
      () => whole.replace("Content-Length: ", "Content-Length: -"),
      () => whole.replace(/\d+\r\n\r\n/, "5\r\n\r\n"),
      () => whole.replace("\r\n\r\n", `\r\nX: ${"x".repeat(80_000)}\r\n\r\n`),
      () => whole.replace(/:/g, () => (below(3) ? ":" : "\0")),
      () => Buffer.from(Array.from({ length: below(3000) }, () => below(256))),
    ])());
    const socket = net.connect(Number(new URL(this.server.url).port), "127.0.0.1");
    let text = "";
    socket.on("data", (data) => { text += data; }).on("error", () => {});
    for (let at = 0; at < bytes.length;) {
      const piece = 1 + below(bytes.length);
      socket.write(bytes.subarray(at, at + piece));
      at += piece;
      await sleep(below(3));
    }
    await Promise.race([new Promise((resolve) => socket.on("close", resolve)), sleep(500)]);
    socket.destroy();
    assert.doesNotMatch(text, /^HTTP\/1\.1 5/, "nonsense made the server fail");
  }

  async client(until) {
    while (Date.now() < until) {
      const chance = random();
      const act = chance < 0.5 ? () => this.ask(one_of(wishes)) : chance < 0.6 ? () => this.ask_with_passing_key()
        : chance < 0.8 ? () => this.leave_early() : chance < 0.9 ? () => this.send_nonsense() : () => this.read_slowly();
      await act().catch((error) => this.failures.push(error));
      await sleep(-Math.log(1 - random()) * 100);  // arrivals are random, too
    }
  }
}

const resident = (pid) => Number(readFileSync(`/proc/${pid}/statm`, "utf8").split(" ")[1]) * 4096;
const median = (list) => [...list].sort((a, b) => a - b)[list.length >> 1];

async function main(cleanups) {
  const t = { after: (cleanup) => cleanups.push(cleanup) };
  const keys = new Keys(t);
  const server = await serve(t, ["--max-batch", "16", "--max-waiting", "24", "--kv-memory", "12MiB", "--log-level", "warning", "--api-key-file", keys.file]);
  const storm = new Storm(server, [server.url, await nginx(t, server.port)], keys);
  await storm.learn();
  const seconds = Number(options.seconds);
  const until = Date.now() + seconds * 1000;
  const memory = [];
  const meter = setInterval(() => memory.push(resident(server.child.pid)), 500);
  const change = setInterval(() => { keys.renew(); server.child.kill("SIGHUP"); count("key change"); }, 1000);
  await Promise.all(Array.from({ length: Number(options.clients) }, () => storm.client(until)));
  clearInterval(meter);
  clearInterval(change);
  await frees_everything(server.url, { headers: withKey() });
  for (const [name, value] of await metrics(server.url, { headers: withKey() }))
    if (/^braid_((preemptions|client_disconnects|sequences_(submitted|finished|cancelled|failed))_total|(backpressure|cancel_to_free_steps|requests_refused|timeouts)_total)/.test(name) && value > 0) tally[name] = value;
  const share = (from, to) => median(memory.slice(Math.floor(memory.length * from), Math.ceil(memory.length * to)));
  const growth = share(0.9, 1) / share(0.4, 0.6) - 1;
  console.log(JSON.stringify({ seconds, tally, resident_MB: Math.round(share(0.9, 1) / 1e6), growth_percent: Number((growth * 100).toFixed(2)) }, null, 1));
  for (const failure of storm.failures.slice(0, 5)) console.error(failure);
  assert.equal(storm.failures.length, 0, `${storm.failures.length} requests went wrong`);
  assert.ok(tally.answered > 0);
  assert.equal(server.child.exitCode, null);
  if (options.rss) assert.ok(growth < 0.02, `resident memory grew by ${(growth * 100).toFixed(1)} % from the plateau`);
}

const cleanups = [];
let failed = false;
await main(cleanups).catch((error) => { console.error(error); failed = true; });
for (const cleanup of cleanups.reverse()) await cleanup();
process.exit(failed ? 1 : 0);
