// Restarts that no client notices: sockets from the service manager, and from the server before.
import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import http from "node:http";
import net from "node:net";
import path from "node:path";
import { test } from "node:test";
import { ask } from "./support/connections.mjs";
import { Load } from "./support/load.mjs";
import { braid, braidBinary, freePort, Process, run, sanitized, serve, sourceFolder, temporaryFolder } from "./support/processes.mjs";
import { eventually } from "./support/client.mjs";

const body = { prompt: "Once upon a time", max_tokens: 12, temperature: 0, ignore_eos: true };
const completions = "/v1/completions";

// Half of the workers ask each time over a new connection, the others over one that is kept as long as the server keeps it; every answer
// has to be the right one.
function load_of(url, workers, expected) {
  const agents = Array.from({ length: workers }, (_, i) => i % 4 < 2 && new http.Agent({ keepAlive: true, maxSockets: 1 }));
  return new Load(workers, async (i) => {
    const stream = i % 2 === 0;
    const { status, body: text } = await ask(url, completions, { body: { ...body, stream }, agent: agents[i] });
    assert.equal(status, 200, text);
    if (stream) assert.ok(text.endsWith("data: [DONE]\n\n") && !text.includes('"error"'), text);
    else assert.equal(JSON.parse(text).choices[0].text, expected);
  });
}

test("a server is taken over under load: no connection is refused, no request fails", async (t) => {
  const control = path.join(temporaryFolder(t), "control");
  const args = ["--takeover", control, "--kv-memory", "64MiB", "--drain-timeout", "120s", "--header-timeout", "1h"];
  let server = await serve(t, args);
  const expected = JSON.parse((await ask(server.url, completions, { body })).body).choices[0].text;
  const load = load_of(server.url, 8, expected);
  await load.another(20);
  for (let generation = 0; generation < 3; ++generation) {
    const successor = await serve(t, args);
    assert.equal(successor.url, server.url);
    assert.deepEqual(await server.exited, { code: 0, signal: null });
    await load.another(20);
    server = successor;
  }
  await load.stop();
  server.child.kill("SIGTERM");
  assert.deepEqual(await server.exited, { code: 0, signal: null });
  assert.ok(!existsSync(control));
});

test("what runs when the successor comes is finished by the one before", async (t) => {
  const control = path.join(temporaryFolder(t), "control");
  const args = ["--takeover", control, "--kv-memory", "64MiB", "--drain-timeout", "120s", "--header-timeout", "1h"];
  const first = await serve(t, args);
  const running = ask(first.url, completions, { body: { ...body, max_tokens: 900, stream: true } });
  const silent = net.connect(first.port, "127.0.0.1");  // its first request comes later
  await new Promise((resolve) => silent.on("connect", resolve));
  await eventually("all are accepted", async () => (await ask(first.url, "/slots")).body.includes('"decode"'));
  await serve(t, args);
  silent.write("GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n");
  let answer = "";
  for await (const part of silent) answer += part;
  assert.match(answer, /^HTTP\/1\.1 200 /);
  assert.ok((await running).body.endsWith("data: [DONE]\n\n"));
  assert.deepEqual(await first.exited, { code: 0, signal: null });
});

test("the first SIGTERM to a server that has been taken over ends no answer", async (t) => {
  const args = ["--takeover", path.join(temporaryFolder(t), "control"), "--kv-memory", "64MiB", "--drain-timeout", "250s"];
  const first = await serve(t, [...args, "--isa", "avx2", "--threads", "1"]);
  const running = ask(first.url, completions, { body: { ...body, max_tokens: sanitized ? 250 : 900, n: 8, stream: true } });
  await eventually("it runs", async () => (await ask(first.url, "/slots")).body.includes('"decode"'));
  await serve(t, args);
  await eventually("it has been taken over", () => first.errors.includes("a successor serves"));
  first.child.kill("SIGTERM");
  const answer = (await running).body;
  assert.ok(answer.endsWith("data: [DONE]\n\n") && !answer.includes('"error"'), answer.slice(-300));
  assert.deepEqual(await first.exited, { code: 0, signal: null });
  assert.match(first.errors, /SIGTERM: still finishing/);
});

test("a successor that cannot start changes nothing", async (t) => {
  const control = path.join(temporaryFolder(t), "control");
  const args = ["--takeover", control, "--kv-memory", "64MiB"];
  const server = await serve(t, args);
  const failed = await braid(t, ["serve", ...args, "/does/not/exist.gguf"]);
  assert.equal(failed.code, 1);
  assert.equal((await ask(server.url, "/readyz")).status, 200);
  const needs = await braid(t, ["serve", "--takeover", control]);
  assert.equal(needs.code, 2);
  assert.match(needs.stderr, /--takeover needs --kv-memory/);
  const unfit = await braid(t, ["serve", ...args, "--tls-cert", "/does/not/exist", "--tls-key", "/does/not/exist"]);
  assert.deepEqual([unfit.code, /^ready/m.test(unfit.stdout)], [1, false], unfit.stdout);
  assert.equal((await ask(server.url, "/readyz")).status, 200);
});

test("a server that is told to end while its successor loads leaves it all its sockets", async (t) => {
  const folder = temporaryFolder(t);
  const [control, socketPath] = [path.join(folder, "control"), path.join(folder, "socket")];
  const args = ["--takeover", control, "--unix-socket", socketPath, "--unix-token", "off", "--kv-memory", "64MiB"];
  const first = await serve(t, args);
  const loading = serve(t, args);
  await eventually("it has the sockets", () => first.errors.includes("a successor has the listening sockets"));
  first.child.kill("SIGTERM");
  assert.deepEqual(await first.exited, { code: 0, signal: null });
  const waits = ask(first.url, "/livez");
  const successor = await loading;
  assert.equal((await waits).status, 200);
  assert.equal((await ask({ socketPath }, "/health")).status, 200);
  const third = await serve(t, args);
  assert.equal(third.url, successor.url);
  assert.deepEqual(await successor.exited, { code: 0, signal: null });
});

test("a successor that waits for another one goes on waiting when it is told to read its files again, and reads them", async (t) => {
  const folder = temporaryFolder(t);
  const [control, keys] = [path.join(folder, "control"), path.join(folder, "keys")];
  writeFileSync(keys, "a sk-before\n");
  const args = ["--takeover", control, "--no-model", "--api-key-file", keys];
  const first = await serve(t, args);
  const other = net.connect(control);  // which never gets ready
  await new Promise((resolve) => other.once("data", resolve));
  const successor = new Process(t, braidBinary, ["serve", ...args]);
  const caught = () => Number.parseInt(readFileSync(`/proc/${successor.child.pid}/status`, "utf8").match(/SigCgt:\s*(\w+)/)[1].slice(-1), 16) & 1;
  await eventually("it hears SIGHUP", () => successor.lines.length > 0 && caught());
  writeFileSync(keys, "a sk-after\n");
  for (let i = 0; i < 20; ++i) {
    successor.child.kill("SIGHUP");
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  other.destroy();
  await successor.line(/^ready/);
  assert.deepEqual(await first.exited, { code: 0, signal: null });
  await eventually("it has the keys of after", async () =>
    (await ask(first.url, "/v1/models", { headers: { authorization: "Bearer sk-after" } })).status === 200);
});

test("a successor that waits for another one may be stopped and go on, and be ended", async (t) => {
  const control = path.join(temporaryFolder(t), "control");
  const args = ["--takeover", control, "--no-model"];
  const first = await serve(t, args);
  const other = net.connect(control);  // which never gets ready
  await new Promise((resolve) => other.once("data", resolve));
  const waits = () => {
    const successor = new Process(t, braidBinary, ["serve", ...args]);
    const holds_back = () => /SigBlk:\s*0*1\n/.test(readFileSync(`/proc/${successor.child.pid}/status`, "utf8"));  // SIGHUP alone
    return eventually("it waits", () => successor.lines.length > 0 && holds_back()).then(() => successor);
  };
  const ended = await waits();
  ended.child.kill("SIGTERM");
  assert.deepEqual(await ended.exited, { code: 0, signal: null });
  const successor = await waits();
  for (let i = 0; i < 5; ++i) {
    successor.child.kill("SIGSTOP");
    await new Promise((resolve) => setTimeout(resolve, 20));
    successor.child.kill("SIGCONT");
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  other.destroy();
  await successor.line(/^ready/);
  assert.deepEqual(await first.exited, { code: 0, signal: null });
});

test("the units that are shipped are valid", async (t) => {
  const is_there = await run(t, "systemd-analyze", ["--version"]).then(({ code }) => code === 0, () => false);
  if (!is_there) return t.skip("there is no systemd-analyze");
  const folder = temporaryFolder(t);
  const units = ["braid.service", "braid.socket"].map((name) => path.join(folder, name));
  for (const unit of units) {
    const text = readFileSync(path.join(sourceFolder, "deploy/systemd", path.basename(unit)), "utf8");
    writeFileSync(unit, text.replace("/usr/local/bin/braid", braidBinary));
  }
  const { code, stdout, stderr } = await run(t, "systemd-analyze", ["verify", "--man=no", ...units]);
  const faults = `${stdout}${stderr}`.split("\n").filter((line) => line.includes(folder));  // others are about this machine
  assert.deepEqual([code, faults], [0, []]);
});

test("sockets from systemd beside those of a predecessor", async (t) => {
  const control = path.join(temporaryFolder(t), "control");
  const args = ["--takeover", control, "--kv-memory", "64MiB"];
  const server = await serve(t, args);
  const port = await freePort();
  const activator = new Process(t, process.env.BRAID_SOCKET_ACTIVATE, ["-l", `127.0.0.1:${port}`, braidBinary, "serve", ...args, "--port", "0"]);
  await eventually("it listens", () => activator.errors.includes("Listening on"));
  const health = ask(`http://127.0.0.1:${port}`, "/livez");  // starts the server
  await activator.line(/^ready/);
  assert.deepEqual(await server.exited, { code: 0, signal: null });
  assert.equal((await health).status, 200);
  assert.equal((await ask(server.url, "/health")).status, 200);
  assert.match(activator.errors, /--port, --listen and --unix-socket are not used: the service manager has opened the sockets/);
});

test("sockets from systemd", async (t) => {
  const port = await freePort();
  const activator = new Process(t, process.env.BRAID_SOCKET_ACTIVATE, ["-l", `127.0.0.1:${port}`, braidBinary, "serve", "--drain-timeout", "60s", "--header-timeout", "1h"]);
  await eventually("it listens", () => activator.errors.includes("Listening on"));
  const url = `http://127.0.0.1:${port}`;
  const first = net.connect(port, "127.0.0.1");  // starts the server
  await activator.line(/^ready/);
  assert.ok(activator.lines.some((line) => line.endsWith(`listening on ${url}`)));
  assert.equal((await ask(url, completions, { body })).status, 200);
  // The socket is the service manager's: who has connected is answered also after SIGTERM.
  const running = ask(url, completions, { body: { ...body, max_tokens: 600 } });
  await eventually("it runs", async () => (await ask(url, "/slots")).body.includes('"decode"'));
  activator.child.kill("SIGTERM");
  await eventually("it is told", () => activator.errors.includes("SIGTERM"));
  first.write("GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n");
  let answer = "";
  for await (const part of first) answer += part;
  assert.match(answer, /^HTTP\/1\.1 200 /);
  assert.equal((await running).status, 200);
  assert.deepEqual(await activator.exited, { code: 0, signal: null });
});
