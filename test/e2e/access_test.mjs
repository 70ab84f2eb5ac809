// API keys, rate limits, CORS and the log, as clients and operators meet them.
import assert from "node:assert/strict";
import { test } from "node:test";
import { writeFileSync } from "node:fs";
import path from "node:path";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { braid, serve, temporaryFolder } from "./support/processes.mjs";
import { collect, eventually, events, post } from "./support/client.mjs";

const body = { prompt: "Once upon a time", max_tokens: 4, temperature: 0, ignore_eos: true };
const chat = { model: "default", messages: [{ role: "user", content: "Hi" }], max_tokens: 4 };
const withKey = (key) => ({ headers: { "Content-Type": "application/json", Authorization: `Bearer ${key}` } });

function keyFile(t, text) {
  const file = path.join(temporaryFolder(t), "keys");
  writeFileSync(file, text);
  return file;
}

// The whole ones that have arrived.
const logLines = (server) => server.errors.split("\n").slice(0, -1).map((line) => JSON.parse(line));

test("keys from a file, read again on SIGHUP, through the SDKs", async (t) => {
  const file = keyFile(t, "alice sk-alice-1  # first\nbob sk-bob-1 requests-per-minute=1\n");
  const server = await serve(t, ["--api-key-file", file, "--log-format", "json", "--access-log"], { env: { BRAID_API_KEY: "sk-env-1" } });
  const openai = (apiKey) => new OpenAI({ baseURL: `${server.url}/v1`, apiKey, maxRetries: 0 });
  const anthropic = (apiKey) => new Anthropic({ baseURL: server.url, apiKey, maxRetries: 0 });

  assert.equal((await fetch(`${server.url}/health`)).status, 200);
  assert.equal((await fetch(`${server.url}/metrics`)).status, 401);
  await assert.rejects(openai("sk-alice-2").chat.completions.create(chat), OpenAI.AuthenticationError);
  await assert.rejects(anthropic("sk-alice-2").messages.create(chat), Anthropic.AuthenticationError);
  await openai("sk-env-1").chat.completions.create(chat);
  await anthropic("sk-alice-1").messages.create(chat);
  await openai("sk-bob-1").chat.completions.create(chat);
  await assert.rejects(openai("sk-bob-1").chat.completions.create(chat), (error) => {
    assert.ok(error instanceof OpenAI.RateLimitError);
    assert.equal(error.code, "rate_limit_exceeded");
    assert.equal(error.headers.get("x-ratelimit-remaining-requests"), "0");
    return Number(error.headers.get("retry-after")) >= 1;
  });

  const running = await post(`${server.url}/v1/completions`, { ...body, max_tokens: 300, stream: true, return_token_ids: true },
    withKey("sk-alice-1"));
  writeFileSync(file, "alice sk-alice-3\n");
  server.child.kill("SIGHUP");
  const status = async (key) => (await fetch(`${server.url}/v1/models`, withKey(key))).status;
  await eventually("the new key is taken", async () => (await status("sk-alice-3")) === 200);
  assert.equal(await status("sk-alice-1"), 401);
  assert.equal(await status("sk-bob-1"), 401);
  assert.equal(await status("sk-env-1"), 200);
  assert.equal((await collect(running)).tokens.length, 300);

  writeFileSync(file, "alice\n");
  server.child.kill("SIGHUP");
  await eventually("the error is logged", async () => logLines(server).some(({ level, message }) => level === "error" && /:1: there is a name/.test(message)));
  assert.equal(await status("sk-alice-3"), 200);

  const lines = logLines(server);
  const request = lines.find(({ message, key, status: code }) => message === "request" && key === "alice" && code === 200);
  assert.equal(request.route, "/messages");
  assert.equal(request.generated_tokens, 4);
  assert.ok(request.total_ms >= request.first_token_ms && request.first_token_ms > 0);
  assert.doesNotMatch(server.errors, /sk-/);
});

test("a key neither sees, nor reads, nor ends the work of another", async (t) => {
  const server = await serve(t, ["--isa", "avx2", "--threads", "1", "--max-batch", "1", "--api-key-file", keyFile(t, "alice sk-alice\nbob sk-bob\n")]);
  const sdk = (apiKey) => new OpenAI({ baseURL: `${server.url}/v1`, apiKey, maxRetries: 0 });
  const alice = sdk("sk-alice");
  const bob = sdk("sk-bob");
  const is_unknown = (error) => error instanceof OpenAI.NotFoundError;
  const ask = { model: "default", input: "My name is Mira.", temperature: 0, max_output_tokens: 4 };
  const kept = await alice.responses.create(ask);
  const next = { ...ask, previous_response_id: kept.id };
  await assert.rejects(bob.responses.retrieve(kept.id), is_unknown);
  await assert.rejects(bob.responses.inputItems.list(kept.id), is_unknown);
  await assert.rejects(bob.responses.delete(kept.id), is_unknown);
  await assert.rejects(bob.responses.create(next), (error) => error instanceof OpenAI.BadRequestError && error.code === "previous_response_not_found");
  await alice.responses.create(next);
  assert.equal((await alice.responses.retrieve(kept.id)).output_text, kept.output_text);

  // Alice's answer runs, Bob's waits behind it; each sees and ends its own.
  const long = { ...body, max_tokens: 900, stream: true };
  const streams = { alice: await post(`${server.url}/v1/completions`, long, withKey("sk-alice")), bob: await post(`${server.url}/v1/completions`, long, withKey("sk-bob")) };
  const slots = async (key) => (await (await fetch(`${server.url}/slots`, withKey(key))).json()).filter((slot) => slot.request);
  const abort = async (id, key) => (await post(`${server.url}/v1/abort`, { id }, withKey(key))).status;
  const [[of_alice], [of_bob]] = [await slots("sk-alice"), await slots("sk-bob")];
  assert.equal((await slots("sk-alice")).length, 1);
  assert.equal((await slots("sk-bob")).length, 1);
  assert.notEqual(of_alice.request, of_bob.request);
  assert.equal(await abort(of_alice.request, "sk-bob"), 404);
  assert.equal(await abort(of_bob.request, "sk-alice"), 404);
  assert.equal(await abort(of_alice.request, "sk-alice"), 200);
  assert.equal(await abort(of_bob.request, "sk-bob"), 200);
  for (const stream of Object.values(streams)) assert.match((await collect(stream)).error.message, /aborted/);
});

test("a key file that is wrong ends the start with its line and nothing of it", async (t) => {
  const result = await braid(t, ["serve", "--no-model", "--port", "0", "--api-key-file", keyFile(t, "a sk-secret\nsk-secret-2\n")]);
  assert.equal(result.code, 2);
  assert.match(result.stderr, /keys:2: there is a name and no key/);
  assert.doesNotMatch(result.stderr, /sk-secret/);
});

test("pages of allowed origins may ask", async (t) => {
  const server = await serve(t, ["--no-model", "--cors-origin", "https://a.example", "--cors-origin", "https://b.example:8443"]);
  for (const origin of ["https://a.example", "https://b.example:8443"]) {
    const response = await fetch(`${server.url}/v1/chat/completions`, { method: "OPTIONS",
      headers: { Origin: origin, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization" } });
    assert.equal(response.status, 204);
    assert.equal(response.headers.get("access-control-allow-origin"), origin);
    assert.equal(response.headers.get("access-control-allow-headers"), "authorization");
  }
  const result = await braid(t, ["serve", "--cors-origin", "example.org/"]);
  assert.match(result.stderr, /'example.org\/' is no origin/);
});

test("an aborted answer is one line of the log, whatever its id holds", async (t) => {
  const server = await serve(t, ["--log-format", "json"]);
  const client = new AbortController();
  const response = await post(`${server.url}/v1/completions`, { ...body, max_tokens: 2000, stream: true },
    { signal: client.signal, headers: { "Content-Type": "application/json", "X-Request-Id": '","level":"forged' } });
  await events(response).next();
  client.abort();
  const aborted = () => logLines(server).filter(({ message }) => message === "request aborted");
  await eventually("the abort is logged", async () => aborted().length > 0);
  assert.deepEqual(aborted().map(({ level, request, reason }) => [level, request, reason]), [["info", '","level":"forged', "client gone"]]);
});

test("a log that nobody reads stops nothing, and tells what it lost", async (t) => {
  const server = await serve(t, ["--no-model", "--access-log"]);
  server.child.stderr.pause();
  const headers = { "X-Request-Id": "x".repeat(120) };  // more than the queue, the pipe and its reader hold
  for (let i = 0; i < 6000; ++i) assert.equal((await fetch(`${server.url}/health`, { headers })).status, 200);
  server.child.stderr.resume();
  await eventually("lines were lost", async () => {
    await fetch(`${server.url}/health`);
    return /warning \d+ lines of the log were lost/.test(server.errors);
  });
  server.child.stderr.pause();
  for (let i = 0; i < 6000; ++i) await fetch(`${server.url}/health`, { headers });
  server.child.kill("SIGTERM");
  server.child.stderr.resume();
  assert.equal((await server.exited).code, 0);
});
