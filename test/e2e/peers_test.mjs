// Servers beside each other (--peers): what an administrator changes on one of them all have, or say in /readyz that they lack it.
import assert from "node:assert/strict";
import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { eventually, post } from "./support/client.mjs";
import { safetensors, tensors_of, write_adapter } from "./support/adapters.mjs";
import { braid, freePort, serve, sourceFolder, temporaryFolder } from "./support/processes.mjs";

const mlp = path.join(sourceFolder, "test/model/reference/networks/mlp");
const demo = path.join(sourceFolder, "models/demo-q8_0.gguf");
const observation = { x: [[0.5, -1, 0, 0.25, 2, 1e-3, -7]] };

// Biases of the network, so that its weights are others.
const bias = (value) => safetensors({ "policy.bias": { shape: [4], values: Array(4).fill(value) } }, { model: "mlp", partial: "true" });
// All of its file, with the bias of the policy replaced.
function whole(value) {
  const bytes = readFileSync(path.join(mlp, "model.safetensors"));
  const length = Number(bytes.readBigUInt64LE(0));
  const header = JSON.parse(bytes.subarray(8, 8 + length).toString());
  const [begin, end] = header["policy.bias"].data_offsets;
  const changed = Buffer.from(bytes);
  for (let at = begin; at < end; at += 4) changed.writeFloatLE(value, 8 + length + at);
  return changed;
}

async function json(response, status = 200) {
  const text = await response.text();
  assert.equal(response.status, status, text);
  return JSON.parse(text);
}
const send = (server, bytes) => fetch(`${server.url}/update_weights`, { method: "POST", headers: { "Content-Type": "application/octet-stream" }, body: bytes });
const revision = async (server) => (await json(await post(`${server.url}/v1/predict`, { model: "mlp", inputs: observation }))).revision;
const peers = async (server) => json(await fetch(`${server.url}/v1/peers`));
const readiness = async (server) => {
  const response = await fetch(`${server.url}/readyz`);
  return response.status === 200 ? "" : (await response.json()).reasons[0];
};
const ready = (...servers) => eventually("all are ready", async () => (await Promise.all(servers.map(readiness))).every((reason) => reason === ""), 60);
const are_told = (server) => eventually("all others have what this one has", async () => {
  const { peers: all } = await peers(server);
  return all.length > 0 && all.every(({ node, lacks }) => node !== "" && lacks === "");
}, 60);
const has = (server, expected) => eventually(`it has ${expected}`, async () => (await revision(server)) === expected, 60);

// Servers at these places that each know all of them, themselves as well.
async function set_of(t, count, models, args = () => []) {
  const ports = [];
  for (let i = 0; i < count; ++i) ports.push(await freePort());
  const names = ports.flatMap((port) => ["--peers", `127.0.0.1:${port}`]);
  const start = (i) => serve(t, [...models, ...names, "--threads", "1", ...args(i)], { port: ["--port", String(ports[i])] });
  const servers = [];
  for (let i = 0; i < count; ++i) servers.push(await start(i));
  await ready(...servers);
  return { servers, start, ports };
}

test("newer weights reach all, and a server that was away says that it lacks them and catches up", async (t) => {
  const { servers: [one, two, three], start } = await set_of(t, 3, [mlp]);
  const first = await revision(one);
  const { revision: second } = await json(await send(one, whole(2)));
  assert.notEqual(second, first);
  for (const server of [two, three]) await has(server, second);

  three.child.kill("SIGKILL");
  await three.exited;
  const { revision: part } = await json(await send(two, bias(3)));
  await has(one, part);
  const back = await start(2);
  await ready(back);
  assert.equal(await revision(back), part, "ready only with what the others have");
  await are_told(one);
  await ready(one, two, back);
  // What came is what it would be alone: all three say the same again after one more.
  const { revision: last } = await json(await send(back, whole(4)));
  for (const server of [one, two]) await has(server, last);
  const { changes } = await peers(one);
  assert.deepEqual(changes.map(({ model, revision, kind }) => [model, revision, kind]), [["mlp", last, "all"]], "what came before is not needed any more");
});

test("a server that hangs holds nobody else up, and catches up when it goes on", async (t) => {
  const { servers: [one, two, three] } = await set_of(t, 3, [mlp]);
  three.child.kill("SIGSTOP");
  const { revision: newer } = await json(await send(one, whole(2)));
  await has(two, newer);
  const { revision: last } = await json(await send(one, whole(3)));  // which asks the one that hangs just now
  await has(two, last);
  three.child.kill("SIGCONT");
  await has(three, last);
  await ready(one, two, three);
});

test("a server whose file is another one changes nothing, and says so until it has the right one", async (t) => {
  const folders = [temporaryFolder(t), temporaryFolder(t)];
  folders.forEach((folder, i) => writeFileSync(path.join(folder, "new.safetensors"), whole(i + 2)));
  const { servers: [one, two] } = await set_of(t, 2, [mlp], (i) => ["--weights-dir", folders[i]]);
  const first = await revision(two);
  const { revision: newer } = await json(await post(`${one.url}/update_weights`, { model: "mlp", path: "new.safetensors" }));
  await eventually("it says so", async () => /weights of 'mlp' could not be brought up to date: .*files differ/.test(await readiness(two)), 60);
  assert.equal(await revision(two), first);
  await eventually("the other one knows", async () => (await peers(one)).peers.some(({ lacks }) => /weights of 'mlp'/.test(lacks)), 60);
  assert.equal(await readiness(one), "");
  cpSync(path.join(folders[0], "new.safetensors"), path.join(folders[1], "new.safetensors"));
  await has(two, newer);
  await ready(two);
});

const kill = async (...servers) => {
  for (const server of servers) server.child.kill("SIGKILL");
  for (const server of servers) await server.exited;
};
const kept = (folder, count) => eventually(`${count} changes are kept`, () => readdirSync(folder).filter((name) => name.endsWith(".change")).length === count, 60);

test("with --peer-state servers that all end have what was changed when they come again, and bring it to the one that was away", async (t) => {
  const folders = [0, 1, 2].map(() => temporaryFolder(t));
  const { servers: [one, two, three], start } = await set_of(t, 3, [mlp], (i) => ["--peer-state", folders[i]]);
  const first = await revision(one);
  await kill(three);
  await json(await send(one, whole(2)));
  const { revision: part } = await json(await send(two, bias(3)));
  await has(one, part);
  for (const folder of folders.slice(0, 2)) await kept(folder, 2);
  await kept(folders[2], 0);
  await kill(one, two);
  const again = await Promise.all([0, 1, 2].map(start));
  await ready(...again);
  for (const server of again) await has(server, part);
  await are_told(again[0]);
  await kept(folders[2], 2);

  await kill(...again);
  const alone = await start(2);
  await ready(alone);
  assert.equal(await revision(alone), part, "it needs nobody for what it has kept");
  const { revision: last } = await json(await send(alone, whole(4)));
  await kept(folders[2], 1);
  alone.child.kill("SIGTERM");
  assert.deepEqual(await alone.exited, { code: 0, signal: null });
  const both = await Promise.all([2, 0].map(start));
  await ready(...both);
  for (const server of both) await has(server, last);
  await kept(folders[0], 1);
  assert.notEqual(first, last);
});

test("a server that cannot repeat what it has kept says so until it can", async (t) => {
  const weights = [temporaryFolder(t), temporaryFolder(t)];
  const states = [temporaryFolder(t), temporaryFolder(t)];
  for (const folder of weights) writeFileSync(path.join(folder, "new.safetensors"), whole(2));
  const { servers, start } = await set_of(t, 2, [mlp], (i) => ["--weights-dir", weights[i], "--peer-state", states[i]]);
  const { revision: newer } = await json(await post(`${servers[0].url}/update_weights`, { model: "mlp", path: "new.safetensors" }));
  await has(servers[1], newer);
  for (const folder of states) await kept(folder, 1);
  await kill(...servers);
  rmSync(path.join(weights[1], "new.safetensors"));
  const [one, two] = await Promise.all([0, 1].map(start));
  await ready(one);
  assert.equal(await revision(one), newer);
  await eventually("it says so", async () => /weights of 'mlp' could not be brought up to date/.test(await readiness(two)), 60);
  await eventually("the other one knows", async () => (await peers(one)).peers.some(({ lacks }) => /has not yet repeated/.test(lacks)), 60);
  cpSync(path.join(weights[0], "new.safetensors"), path.join(weights[1], "new.safetensors"));
  await has(two, newer);
  await ready(two);
  await are_told(one);
});

test("adapters are loaded, updated and unloaded on all", async (t) => {
  const folder = temporaryFolder(t);
  write_adapter(path.join(folder, "tuned"), 1);
  const { servers: [one, two], start } = await set_of(t, 2, [demo], () => ["--adapter-dir", folder, "--kv-memory", "64M", "--no-warmup"]);
  const answer = async (server) => (await json(await post(`${server.url}/v1/completions`, {
    model: "tuned", prompt: "Once upon a time", max_tokens: 12, temperature: 0, return_token_ids: true }))).choices[0].token_ids;
  const revision_of = async (server) => {
    const { data } = await json(await fetch(`${server.url}/v1/adapters`));
    return data.find(({ id }) => id === "tuned")?.revision;
  };
  const loaded = await json(await post(`${one.url}/v1/adapters`, { name: "tuned", path: "tuned" }));
  await eventually("the other one has it", async () => (await revision_of(two)) === loaded.revision);
  const updated = await json(await fetch(`${two.url}/update_adapter_weights`, {
    method: "POST", headers: { "Content-Type": "application/octet-stream" }, body: safetensors(tensors_of(2), { adapter: "tuned" }) }));
  assert.notEqual(updated.revision, loaded.revision);
  await eventually("the first one has the newer", async () => (await revision_of(one)) === updated.revision);
  assert.deepEqual(await answer(one), await answer(two));

  one.child.kill("SIGTERM");
  await one.exited;
  const back = await start(0);
  await ready(back);
  assert.equal(await revision_of(back), updated.revision, "as it was loaded, and what it became");
  await json(await fetch(`${back.url}/v1/adapters/tuned`, { method: "DELETE" }));
  await eventually("it is gone", async () => (await revision_of(two)) === undefined);
  await ready(back, two);
});

test("servers take changes from administrators alone", async (t) => {
  const folder = temporaryFolder(t);
  writeFileSync(path.join(folder, "keys"), "ops sk-ops administrator\nuser sk-user\n");
  writeFileSync(path.join(folder, "right"), "sk-ops\n");
  writeFileSync(path.join(folder, "wrong"), "sk-user\n");
  const keys = ["right", "right", "wrong"];
  const ports = [];
  for (let i = 0; i < 3; ++i) ports.push(await freePort());
  const names = ports.flatMap((port) => ["--peers", `http://127.0.0.1:${port}`]);
  const servers = [];
  for (const [i, key] of keys.entries())
    servers.push(await serve(t, [mlp, ...names, "--threads", "1", "--api-key-file", path.join(folder, "keys"), "--peer-key-file", path.join(folder, key)], { port: ["--port", String(ports[i])] }));
  await ready(...servers);
  const as = (key) => ({ headers: { Authorization: `Bearer ${key}`, "Content-Type": "application/octet-stream" } });
  assert.equal((await fetch(`${servers[0].url}/v1/peers`, as("sk-user"))).status, 403);
  assert.equal((await fetch(`${servers[0].url}/v1/peers/changes`, { method: "POST", body: "{}\n", ...as("sk-user") })).status, 403);
  for (const body of ["", "{}", "{}\n", `{"number":1,"node":"x","model":"mlp","adapter":"","revision":"y","kind":"all","route":"/v1/reload"}\n`])
    assert.equal((await fetch(`${servers[0].url}/v1/peers/changes`, { method: "POST", body, ...as("sk-ops") })).status, 400, body);
  const told = async (i) => json(await fetch(`${servers[i].url}/v1/peers`, as("sk-ops")));
  const { revision: newer } = await json(await fetch(`${servers[2].url}/update_weights`, { method: "POST", body: whole(2), ...as("sk-ops") }));
  // With a wrong key it reaches nobody; the others see that it has something that they lack.
  await eventually("it is refused", async () => (await told(2)).peers.every(({ lacks }) => /403/.test(lacks)), 60);
  await eventually("the others say so", async () => /are not yet those of/.test((await told(0)).lacks), 60);
  const { revision: last } = await json(await fetch(`${servers[0].url}/update_weights`, { method: "POST", body: whole(3), ...as("sk-ops") }));
  assert.notEqual(last, newer);
  for (const i of [1, 2]) await eventually("all have the later one", async () => (await told(i)).changes[0]?.revision === last, 60);
  await ready(...servers);
});

test("what cannot be a server is refused at the start, and routes without others are none", async (t) => {
  for (const [args, sentence] of [[["--peers", "ftp://a:1"], /is no HOST:PORT/], [["--peers", "a:0"], /is no HOST:PORT/], [["--peers", "http://a/b"], /is no HOST:PORT/],
    [["--peer-key-file", "x"], /--peer-key-file is about --peers/], [["--peer-state", "x"], /--peer-state is about --peers/], [["--peers", "a", "--peer-state", "/dev/null/x"], /--peer-state: cannot make the folder/], [["--peers", "a", "--peer-key-file", "/nowhere"], /cannot be read/]]) {
    const { code, stderr } = await braid(t, ["serve", mlp, "--port", "0", ...args]);
    assert.notEqual(code, 0);
    assert.match(stderr, sentence);
  }
  const server = await serve(t, [mlp]);
  assert.equal((await fetch(`${server.url}/v1/peers`)).status, 404);
  const alone = await serve(t, [mlp, "--peers", "nobody.invalid:8000"]);
  await ready(alone);
  const shared = await post(`${alone.url}/update_weights`, { model: "mlp", shared_memory: "braid-none" });
  assert.equal(shared.status, 400);
  assert.match((await shared.json()).error.message, /--peers/);
});
