// Limits that are set on the command line, and what a client is told at them.
import assert from "node:assert/strict";
import net from "node:net";
import { test } from "node:test";
import { ask } from "./support/connections.mjs";
import { braid, serve } from "./support/processes.mjs";
import { eventually, frees_everything, metric } from "./support/client.mjs";

const long = { prompt: "Once upon a time", max_tokens: 900, ignore_eos: true };

test("sizes of requests", async (t) => {
  const server = await serve(t, ["--no-model", "--max-body-bytes", "2KiB", "--max-header-bytes", "4KiB"]);
  const body = { prompt: "x".repeat(3000) };
  const large = await ask(server.url, "/v1/completions", { body });
  assert.equal(large.status, 413);
  assert.match(large.body, /larger than 2048 bytes/);
  assert.equal((await ask(server.url, "/health", { headers: { "X-Long": "x".repeat(5000) } })).status, 431);
  for (const [option, value] of [["--max-body-bytes", "1"], ["--max-header-bytes", "1GiB"], ["--header-timeout", "0s"], ["--idle-timeout", "soon"]]) {
    const refused = await braid(t, ["serve", option, value]);
    assert.equal(refused.code, 2);
    assert.match(refused.stderr, new RegExp(option));
  }
});

test("a header that does not arrive", async (t) => {
  const server = await serve(t, ["--no-model", "--header-timeout", "100ms"]);
  const socket = net.connect(server.port, "127.0.0.1");
  socket.write("GET /health HTTP/1.1\r\nHost: a\r\n");
  let answer = "";
  for await (const part of socket) answer += part;
  assert.match(answer, /^HTTP\/1\.1 408 /);
});

test("a request that waits in the queue for too long", async (t) => {
  const server = await serve(t, ["--isa", "avx2", "--threads", "1", "--max-batch", "1", "--queue-timeout", "300ms"]);
  const running = ask(server.url, "/v1/completions", { body: { ...long, max_tokens: 900, stream: true } });
  await eventually("the first one runs", async () => (await metric(server.url, "braid_sequences_decoding")) === 1);
  const others = await Promise.all(Array.from({ length: 4 }, (_, i) =>
    ask(server.url, "/v1/completions", { body: { ...long, stream: i % 2 === 1 } })));
  const told = others.filter(({ body }) => body.includes("waited in the queue"));
  for (const { status, headers, body } of told)
    if (status === 429) assert.ok(headers["retry-after"]); else assert.match(body, /"error"/);
  assert.ok(told.length > 0, "some have to wait while 900 tokens are made");
  assert.ok((await running).body.endsWith("data: [DONE]\n\n"), "what has started is not concerned");
  await frees_everything(server.url);
});

test("an answer that takes too long", async (t) => {
  // Deadlines are looked at now and then: the answer must take longer on any machine.
  const server = await serve(t, ["--isa", "scalar", "--threads", "1", "--no-warmup", "--request-timeout", "1ms"]);
  const whole = await ask(server.url, "/v1/completions", { body: long });
  assert.equal(whole.status, 504);
  assert.equal(JSON.parse(whole.body).error.code, "timeout");
  const streamed = await ask(server.url, "/v1/completions", { body: { ...long, stream: true } });
  assert.match(streamed.body, /did not end within/);
  await frees_everything(server.url);
});

test("a deadline of milliseconds holds for answers that take less than a second", async (t) => {
  const server = await serve(t, ["--request-timeout", "1ms"]);
  for (let i = 0; i < 8; ++i)
    assert.equal((await ask(server.url, "/v1/completions", { body: { ...long, max_tokens: 200 } })).status, 504);
});

test("open files that run out", async (t) => {
  const server = await serve(t, ["--no-model"], { prefix: ["sh", "-c", 'ulimit -n 48; exec "$@"', "sh"] });
  await server.line(/open files: 48 at most/);
  const sockets = Array.from({ length: 80 }, () => net.connect(server.port, "127.0.0.1"));
  await Promise.all(sockets.map((socket) => new Promise((resolve) => socket.on("connect", resolve))));
  await eventually("the log says so", () => server.errors.includes("cannot accept a connection"));
  sockets[0].write("GET /health HTTP/1.1\r\nHost: a\r\n\r\n");
  const [answer] = await new Promise((resolve) => sockets[0].once("data", (data) => resolve([data.toString()])));
  assert.match(answer, /^HTTP\/1\.1 200 /, "who is connected is served");
  for (const socket of sockets) socket.destroy();
  assert.equal((await ask(server.url, "/health")).status, 200);
  // It can run out once more while the ones that waited are accepted and found closed, so only the end counts.
  const lines = (text) => server.errors.split(text).length - 1;
  await eventually("the log says that it is over", () =>
    lines("accepted again") > 0 && lines("cannot accept a connection") === lines("accepted again"));
});
