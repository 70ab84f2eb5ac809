// Work stops when its client goes, in every phase and however it goes, also through nginx: every gauge returns to zero.
import assert from "node:assert/strict";
import { test } from "node:test";
import { nginx, serve } from "./support/processes.mjs";
import { eventually, frees_everything, metric, metrics, RawConnection } from "./support/client.mjs";

const endless = { prompt: "Once upon a time", max_tokens: 900, ignore_eos: true, temperature: 0, stream: true };
const long_prompt = "The fox looked at the kite. ".repeat(120);

// Each: what a client asks, and the figure that shows where its request is. A slow kernel tier keeps it there.
const phases = {
  queued: { body: endless, shown: "braid_sequences_waiting", beside: endless },
  prefill: { body: { ...endless, prompt: long_prompt }, shown: "braid_sequences_prefilling" },
  decode: { body: endless, shown: "braid_sequences_decoding" },
  "decode, not streamed": { body: { ...endless, stream: false }, shown: "braid_sequences_decoding" },
  // Frames of two kilobytes fill the buffers of a client that does not read.
  stalled: {
    path: "/v1/chat/completions", shown: "braid_sequences_stalled", deaf: true,
    body: { messages: [{ role: "user", content: "Hi" }], max_tokens: 900, ignore_eos: true, n: 8, logprobs: true, top_logprobs: 20, stream: true },
  },
};

async function leaves(server, url, phase, how) {
  const { path = "/v1/completions", body, shown, beside, deaf } = phases[phase];
  const others = beside ? [new RawConnection(server.url)] : [];
  for (const other of others) {
    other.post("/v1/completions", beside);
    await eventually("the other one runs", async () => (await metric(server.url, "braid_sequences_decoding")) > 0);
  }
  const client = new RawConnection(url);
  if (deaf) client.socket.pause();
  client.post(path, body);
  await eventually(`it is ${phase}`, async () => (await metric(server.url, shown)) > 0, 60);
  client.leave(how);
  if (others.length > 0) {
    await eventually("the queue is empty", async () => (await metric(server.url, "braid_sequences_waiting")) === 0);
    assert.equal(await metric(server.url, "braid_sequences_decoding"), 1, "the other one goes on");
  }
  for (const other of others) other.leave("FIN");
  await frees_everything(server.url);
  client.leave("FIN");
}

async function in_every_phase(t, through) {
  const server = await serve(t, ["--isa", "scalar", "--max-batch", "1", "--prefill-slice-ms", "1", "--kv-memory", "64MiB"]);
  const wide = await serve(t, ["--kv-memory", "64MiB"]);
  for (const phase of Object.keys(phases)) {
    const used = phases[phase].deaf ? wide : server;
    const url = through === nginx ? await nginx(t, used.port) : used.url;
    for (const how of ["FIN", "half-close", "RST"])
      await t.test(`${phase}, ${how}`, () => leaves(used, url, phase, how));
  }
  for (const used of [server, wide])
    assert.equal((await metrics(used.url)).get('braid_cancel_to_free_steps_total{steps="more"}'), 0, "no sequence outlives its client by more than two steps");
}

test("directly", (t) => in_every_phase(t, null));
test("through nginx", (t) => in_every_phase(t, nginx));

test("while prompts are tokenised, and while they wait for it", async (t) => {
  const server = await serve(t);
  const before = await metric(server.url, "braid_sequences_submitted_total");
  const clients = Array.from({ length: 8 }, () => new RawConnection(server.url));
  for (const client of clients) client.post("/tokenize", { content: "some words of a text ".repeat(40_000) });
  for (const client of clients) client.post("/v1/completions", { prompt: "some words ".repeat(80_000) });
  await eventually("they are being answered", async () => (await metric(server.url, "braid_active_requests")) > 1);
  for (const [i, client] of clients.entries()) client.leave(["FIN", "half-close", "RST"][i % 3]);
  await frees_everything(server.url);
  assert.equal(await metric(server.url, "braid_sequences_submitted_total"), before, "none reached the engine");
});

test("while the server drains: it does not wait for who has gone", async (t) => {
  const server = await serve(t, ["--isa", "scalar", "--drain-timeout", "1h"]);
  const client = new RawConnection(server.url);
  client.post("/v1/completions", endless);
  await eventually("it is decoded", async () => (await metric(server.url, "braid_sequences_decoding")) > 0);
  server.child.kill("SIGTERM");
  await eventually("it drains", async () => (await fetch(`${server.url}/readyz`)).status === 503);
  client.leave("RST");
  assert.deepEqual(await server.exited, { code: 0, signal: null });
});
