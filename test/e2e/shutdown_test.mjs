// SIGTERM and SIGINT: streams finish or end with an error event, never silently; the process leaves with 0.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import dgram from "node:dgram";
import { writeFileSync } from "node:fs";
import { connect } from "node:net";
import path from "node:path";
import { test } from "node:test";
import { setTimeout } from "node:timers/promises";
import { serve, temporaryFolder } from "./support/processes.mjs";
import { collect, events, eventually, metric, post } from "./support/client.mjs";

const long = { prompt: "Once upon a time", max_tokens: 900, ignore_eos: true, stream: true };
const slow = ["--isa", "avx2", "--threads", "1"];  // so that streams outlast whatever delays a test
const completions = (server) => `${server.url}/v1/completions`;

// Streams that have all sent their first token.
async function begin(server, count, body) {
  return Promise.all(Array.from({ length: count }, async () => {
    const stream = events(await post(completions(server), body));
    await stream.next();
    return stream;
  }));
}

async function last(stream) {
  let event = null;
  for await (const next of stream) event = next;
  return event;
}

test("running streams finish within the deadline", async (t) => {
  const server = await serve(t, ["--drain-timeout", "120s"]);
  const streams = await begin(server, 4, { ...long, max_tokens: 300 });
  server.child.kill("SIGTERM");
  for (const end of await Promise.all(streams.map(last))) assert.equal(end, "[DONE]");
  assert.deepEqual(await server.exited, { code: 0, signal: null });
});

// More than the buffers between them take, for a client that reads nothing until long after the last token.
test("an answer that is not streamed may be taken until the deadline, too", async (t) => {
  const server = await serve(t, ["--drain-timeout", "120s"]);
  const client = connect(server.port, "127.0.0.1");
  const body = JSON.stringify({ ...long, stream: false, n: 8, max_tokens: 250, logprobs: 20 });
  client.write(`POST /v1/completions HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
  await eventually("it is written", async () => (await metric(server.url, "braid_client_backlog_bytes")) > 0, 240);
  server.child.kill("SIGTERM");
  await setTimeout(8000);
  let answer = "";
  for await (const bytes of client) answer += bytes;
  assert.equal(JSON.parse(answer.slice(answer.indexOf("\r\n\r\n"))).choices.length, 8);
  assert.deepEqual(await server.exited, { code: 0, signal: null });
  assert.match(server.errors, /finishing 1 running requests/);
});

test("past the deadline the rest gets a terminal error event", async (t) => {
  const server = await serve(t, [...slow, "--drain-timeout", "0s"]);
  const streams = await begin(server, 16, long);
  server.child.kill("SIGINT");
  for (const end of await Promise.all(streams.map(last))) assert.ok(end?.error?.message, `ended with ${JSON.stringify(end)}`);
  assert.deepEqual(await server.exited, { code: 0, signal: null });
});

test("while draining, /readyz and new work answer 503, and /livez still 200", async (t) => {
  const server = await serve(t, [...slow, "--drain-timeout", "120s"]);
  const streams = await begin(server, 2, long);
  server.child.kill("SIGTERM");
  await eventually("/readyz says 503", async () => (await fetch(`${server.url}/readyz`)).status === 503);
  assert.equal((await fetch(`${server.url}/livez`)).status, 200);
  assert.equal((await post(completions(server), { prompt: "Hello", max_tokens: 1 })).status, 503);
  for (const stream of streams) await stream.return();
  assert.deepEqual(await server.exited, { code: 0, signal: null });
});

test("a second signal stops at once, with an error event", async (t) => {
  const server = await serve(t, [...slow, "--drain-timeout", "1h"]);
  const streams = await begin(server, 16, long);
  server.child.kill("SIGTERM");
  await eventually("/readyz says 503", async () => (await fetch(`${server.url}/readyz`)).status === 503);
  server.child.kill("SIGTERM");
  for (const end of await Promise.all(streams.map(last))) assert.ok(end?.error?.message, `ended with ${JSON.stringify(end)}`);
  assert.deepEqual(await server.exited, { code: 0, signal: null });
});

test("a second signal waits for no request that has not come", async (t) => {
  const server = await serve(t, ["--header-timeout", "1h", "--body-timeout", "1h"]);
  const starts = ["", "GET /health HT", "POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n{"];
  const clients = starts.map((start) => connect(server.port, "127.0.0.1").on("error", () => {}));
  clients.forEach((client, i) => client.write(starts[i]));
  await eventually("they are here", async () => (await metric(server.url, "braid_open_connections")) > clients.length);
  server.child.kill("SIGTERM");
  await eventually("it is heard", () => server.errors.includes("once more stops them"));
  server.child.kill("SIGTERM");
  assert.deepEqual(await server.exited, { code: 0, signal: null });
  assert.doesNotMatch(server.errors, /connections are closed/);  // which it says of those that it has waited for in vain
});

for (const signal of ["SIGTERM", "SIGHUP"]) {
  test(`${signal}s until the very end change nothing`, async (t) => {
    const server = await serve(t);
    server.child.kill("SIGTERM");
    const again = setInterval(() => server.child.kill(signal), 5);
    try {
      assert.deepEqual(await server.exited, { code: 0, signal: null });
    } finally {
      clearInterval(again);
    }
  });
}

// As from a terminal whose shell passes on what the whole group has got already.
test("several signals at once end it like one", async (t) => {
  const server = await serve(t);
  for (const signal of ["SIGTERM", "SIGINT", "SIGTERM"]) server.child.kill(signal);
  assert.deepEqual(await server.exited, { code: 0, signal: null });
});

test("a signal while the model loads ends the process", async (t) => {
  const server = await serve(t, [], { ready: false });
  server.child.kill("SIGTERM");
  assert.deepEqual(await server.exited, { code: 0, signal: null });
});

test("five start, serve and stop cycles", async (t) => {
  let first;
  for (let cycle = 0; cycle < 5; ++cycle) {
    const server = await serve(t);
    const answer = await collect(await post(completions(server), { ...long, max_tokens: 20, temperature: 0 }));
    first ??= answer.text;
    assert.equal(answer.text, first);
    server.child.kill(cycle % 2 === 0 ? "SIGTERM" : "SIGINT");
    assert.deepEqual(await server.exited, { code: 0, signal: null });
  }
});

test("--drain-delay keeps everything going after SIGTERM, but for /readyz", async (t) => {
  const server = await serve(t, ["--drain-delay", "1h"]);
  server.child.kill("SIGTERM");
  await eventually("/readyz says so", async () => (await fetch(`${server.url}/readyz`)).status === 503);
  assert.equal((await fetch(`${server.url}/health`)).status, 503);
  assert.equal((await fetch(`${server.url}/livez`)).status, 200);
  const answer = await collect(await post(completions(server), { ...long, max_tokens: 5 }));
  assert.equal(answer.done, true);
  server.child.kill("SIGTERM");
  assert.deepEqual(await server.exited, { code: 0, signal: null });
});

test("after --drain-delay it ends by itself", async (t) => {
  const server = await serve(t, ["--no-model", "--drain-delay", "200ms"]);
  server.child.kill("SIGTERM");
  assert.deepEqual(await server.exited, { code: 0, signal: null });
});

// A name server that never answers, for programs that are begun with this before them; it is asked for longer than a test may take.
const may_mount = spawnSync("unshare", ["-m", "mount", "--bind", "/etc/hosts", "/etc/hosts"]).status === 0;
async function hanging_resolver(t) {
  const socket = dgram.createSocket("udp4");
  t.after(() => socket.close());
  const asked = new Promise((resolve) => socket.once("message", resolve));
  await new Promise((resolve, reject) => socket.once("error", reject).bind(53, "127.0.0.199", resolve));
  const file = path.join(temporaryFolder(t), "resolv.conf");
  writeFileSync(file, "nameserver 127.0.0.199\nnameserver 127.0.0.199\noptions timeout:30 attempts:5\n");
  return { asked, prefix: ["unshare", "-m", "sh", "-c", 'mount --bind "$0" /etc/resolv.conf && exec "$@"', file] };
}

test("a server answers and ends while the names of its Redis, its peers and its collector are being looked up", { skip: !may_mount && "a file system may not be mounted here" }, async (t) => {
  const { asked, prefix } = await hanging_resolver(t);
  const server = await serve(t, ["--kv-memory", "64M", "--kv-redis", "redis://cache.example", "--peers", "nodes.example:80", "--otlp-endpoint", "http://traces.example:4318"], { prefix });
  const answer = await post(completions(server), { ...long, max_tokens: 20, stream: false });
  assert.equal(answer.status, 200);
  await answer.json();
  await asked;
  server.child.kill("SIGTERM");
  assert.deepEqual(await server.exited, { code: 0, signal: null });
});
