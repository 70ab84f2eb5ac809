// Newer weights for what runs: whole and in part, by body, path and shared memory; what does not fit leaves the old ones live. And what stops
// the work of all clients.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { serve, sourceFolder, temporaryFolder } from "./support/processes.mjs";
import { collect, events, post, story } from "./support/client.mjs";
import { safetensors } from "./support/adapters.mjs";

const demo = path.join(sourceFolder, "models/demo-q8_0.gguf");
const mlp = path.join(sourceFolder, "test/model/reference/networks/mlp");
const observation = { x: [[0.5, -1, 0, 0.25, 2, 1e-3, -7], [1, 2, 3, 4, 5, 6, 7]] };

// The float32 tensors of a file: { name: { shape, values } }.
function read_tensors(file) {
  const bytes = readFileSync(file);
  const length = Number(bytes.readBigUInt64LE(0));
  const { __metadata__, ...header } = JSON.parse(bytes.subarray(8, 8 + length).toString());
  const data = bytes.subarray(8 + length);
  return Object.fromEntries(Object.entries(header).map(([name, { dtype, shape, data_offsets: [begin, end] }]) => {
    assert.equal(dtype, "F32");
    return [name, { shape, values: [...new Float32Array(Uint8Array.from(data.subarray(begin, end)).buffer)] }];
  }));
}
const scaled = (tensors, factor) =>
  Object.fromEntries(Object.entries(tensors).map(([name, { shape, values }]) => [name, { shape, values: values.map((value) => Math.fround(value * factor)) }]));
const sha256 = (bytes) => createHash("sha256").update(bytes).digest("hex");

async function json(response, status = 200) {
  const answer = await response.json();
  assert.equal(response.status, status, JSON.stringify(answer));
  return answer;
}
const predict = async (server) => json(await post(`${server.url}/v1/predict`, { model: "mlp", inputs: observation }));
const update = (server, fields) => post(`${server.url}/update_weights`, { model: "mlp", ...fields });
const send = (server, body) => fetch(`${server.url}/update_weights`, { method: "POST", headers: { "Content-Type": "application/octet-stream" }, body });

test("a network gets newer weights, and equal ones are the same revision", async (t) => {
  const folder = temporaryFolder(t);
  const server = await serve(t, [mlp, "--weights-dir", folder]);
  const tensors = read_tensors(path.join(mlp, "model.safetensors"));
  const first = await predict(server);

  const whole = await json(await send(server, safetensors(scaled(tensors, 2), { model: "mlp", version: "two" })));
  assert.deepEqual([whole.model, whole.updates, whole.version], ["mlp", 1, "two"]);
  const second = await predict(server);
  assert.equal(second.revision, whole.revision);
  assert.notEqual(second.revision, first.revision);
  assert.notDeepEqual(second.outputs.logits, first.outputs.logits);

  // A bias of the policy alone: what does not depend on it stays.
  const name = "policy.bias";
  const some = { [name]: { shape: tensors[name].shape, values: tensors[name].values.map((value) => value * 2 + 1) } };
  const part = await json(await send(server, safetensors(some, { partial: "true" })));
  const third = await predict(server);
  assert.equal(third.revision, part.revision);
  assert.deepEqual(third.outputs.value, second.outputs.value);
  for (const [i, row] of third.outputs.logits.entries())
    for (const [j, logit] of row.entries()) assert.ok(Math.abs(logit - second.outputs.logits[i][j] - 1) < 1e-4);

  // The first ones again, from a file and from shared memory.
  const file = path.join(folder, "step-1.safetensors");
  writeFileSync(file, safetensors(tensors));
  const back = await json(await update(server, { path: "step-1.safetensors", checksum: sha256(readFileSync(file)) }));
  assert.equal(back.revision, first.revision, "the same values are the same revision");
  assert.deepEqual(await predict(server), first);
  const memory = `braid-test-${process.pid}`;
  writeFileSync(`/dev/shm/${memory}`, safetensors(scaled(tensors, 2)));
  t.after(() => rmSync(`/dev/shm/${memory}`, { force: true }));
  assert.equal((await json(await update(server, { shared_memory: memory }))).revision, whole.revision);
  assert.deepEqual((await predict(server)).outputs, second.outputs);

  const { data } = await json(await fetch(`${server.url}/weight_info`));
  assert.deepEqual(data.map(({ model, updates, version }) => [model, updates, version]), [["mlp", 4, "two"]]);
  const named = await json(await post(`${server.url}/update_weight_version`, { new_version: "best" }));
  assert.deepEqual([named.version, named.revision], ["best", whole.revision]);
  const digests = await json(await post(`${server.url}/weight_checker`, {}));
  assert.equal(digests.revision, whole.revision);
  const expected = Object.entries(scaled(tensors, 2)).map(([tensor, { shape, values }]) =>
    ({ name: tensor, shape, sha256: sha256(Buffer.from(Float32Array.from(values).buffer)) }));
  assert.deepEqual(digests.tensors, expected.sort((a, b) => (a.name < b.name ? -1 : 1)));
});

test("an update that does not fit says which tensor, and leaves the old weights live", async (t) => {
  const folder = temporaryFolder(t);
  const outside = temporaryFolder(t);
  const server = await serve(t, [mlp, "--weights-dir", folder]);
  const tensors = read_tensors(path.join(mlp, "model.safetensors"));
  const first = await predict(server);
  const refused = async (response, status, pattern) => {
    assert.match((await json(response, status)).error.message, pattern);
    assert.deepEqual(await predict(server), first);
  };
  const { "policy.weight": policy, ...others } = tensors;
  await refused(await send(server, safetensors(others)), 400, /'policy\.weight' is missing/);
  await refused(await send(server, safetensors({ ...tensors, extra: policy })), 400, /'extra' is none of the model/);
  const turned = { ...policy, shape: [...policy.shape].reverse() };
  await refused(await send(server, safetensors({ ...tensors, "policy.weight": turned })), 400, /'policy\.weight' has the shape \[.*\]; the loaded one has \[/);
  await refused(await send(server, safetensors({}, { partial: "true" })), 400, /holds no tensors/);
  await refused(await send(server, safetensors(tensors, { model: "other" })), 404, /other/);
  await refused(await send(server, safetensors(tensors).subarray(0, 1000)), 400, /the tensors of the request: /);
  await refused(await send(server, "no weights"), 400, /neither an object nor a safetensors file/);
  await refused(await send(server, Buffer.concat([Buffer.from([255, 255, 0, 0, 0, 0, 0, 0]), Buffer.from("{}")])), 400, /neither an object nor a safetensors file/);
  await refused(await send(server, safetensors(tensors, { mode: "later" })), 400, /'mode' is 'later'/);
  await refused(await send(server, safetensors(tensors, { checksum: "00" })), 400, /its SHA-256 is [0-9a-f]{64}, and 00 was asked for/);

  writeFileSync(path.join(outside, "model.safetensors"), safetensors(scaled(tensors, 3)));
  symlinkSync(outside, path.join(folder, "link"));
  mkdirSync(path.join(folder, "empty"));
  await refused(await update(server, { path: path.join(outside, "model.safetensors") }), 403, /--weights-dir/);
  await refused(await update(server, { path: "link/model.safetensors" }), 403, /--weights-dir/);
  await refused(await update(server, { path: "nothing" }), 404, /nothing/);
  await refused(await update(server, { path: "empty\0/../link" }), 400, /zero byte/);
  await refused(await update(server, { path: "empty" }), 404, /empty\/model\.safetensors/);
  await refused(await update(server, { shared_memory: "../etc/passwd" }), 400, /no name of shared memory/);
  await refused(await update(server, { shared_memory: "braid-nobody" }), 404, /braid-nobody/);
  await refused(await update(server, { shared_memory: "braid\0nobody" }), 400, /no name of shared memory/);
  await refused(await update(server, {}), 400, /'path' is missing/);
  await refused(await update(server, { path: "a", shared_memory: "b" }), 400, /both/);
  await refused(await update(server, { path: "a", color: "red" }), 400, /'color' is not known here/);
});

test("a file is known as one, whatever the length of its header looks like", async (t) => {
  const server = await serve(t, [mlp]);
  const tensors = read_tensors(path.join(mlp, "model.safetensors"));
  const lengths = new Set();
  for (let padding = 0; padding < 256; ++padding) {
    const file = safetensors(tensors, { version: "x".repeat(padding) });
    lengths.add(file[0]);
    await json(await send(server, file));
  }
  for (const first of " \t\r\n{[") assert.ok(lengths.has(first.charCodeAt(0)));
});

test("predictions beside updates are answered by the weights of the revision that they tell", async (t) => {
  const server = await serve(t, [mlp]);
  const tensors = read_tensors(path.join(mlp, "model.safetensors"));
  const known = new Map();
  const bodies = [1, 2, 3].map((factor) => safetensors(scaled(tensors, factor)));
  for (const body of bodies) {
    await json(await send(server, body));
    const { revision, outputs } = await predict(server);
    known.set(revision, outputs);
  }
  assert.equal(known.size, 3);
  let running = true;
  const updates = (async () => {
    for (let i = 0; i < 30; ++i) assert.ok(known.has((await json(await send(server, bodies[i % 3]))).revision));
    running = false;
  })();
  const seen = new Set();
  const asking = Array.from({ length: 4 }, async () => {
    while (running) {
      const { revision, outputs } = await predict(server);
      assert.deepEqual(outputs, known.get(revision));
      seen.add(revision);
    }
  });
  // Several at once: one after the other.
  const together = await Promise.all([0, 1, 2, 0, 1, 2].map(async (i) => json(await send(server, bodies[i]))));
  assert.equal(new Set(together.map(({ updates: number }) => number)).size, 6);
  await Promise.all([updates, ...asking]);
  assert.ok(seen.size > 1);
});

test("what is paused goes on to the same answer, what comes meanwhile waits, and all can be ended", async (t) => {
  const server = await serve(t, [demo, mlp, "--kv-memory", "64M"]);
  const wish = { model: "demo-q8_0", prompt: story, max_tokens: 120, temperature: 0, ignore_eos: true, stream: true };
  const expected = (await collect(await post(`${server.url}/v1/completions`, wish))).text;

  const stream = events(await post(`${server.url}/v1/completions`, wish));
  let text = (await stream.next()).value.choices[0].text;
  const paused = await json(await post(`${server.url}/pause`, {}));
  assert.deepEqual(paused, { object: "pause", is_paused: true, aborted: 0 });
  assert.deepEqual(await json(await fetch(`${server.url}/is_paused`)), { is_paused: true });
  let is_answered = false;
  const later = predict(server).then((answer) => { is_answered = true; return answer; });
  const chat = post(`${server.url}/v1/completions`, { ...wish, max_tokens: 4 });
  assert.equal((await fetch(`${server.url}/readyz`)).status, 200);
  assert.ok(!is_answered, "a prediction waits");
  await json(await post(`${server.url}/resume`, {}));
  for await (const event of stream) if (event !== "[DONE]") text += event.choices[0]?.text ?? "";
  assert.equal(text, expected);
  assert.match((await later).revision, /^[0-9a-f]{32}$/);
  assert.ok((await collect(await chat)).done);

  // Ended by an administrator, one by its id and then all.
  const open = async () => {
    const reading = events(await post(`${server.url}/v1/completions`, { ...wish, max_tokens: 900 }));
    return { id: (await reading.next()).value.id, reading };
  };
  const ended = async ({ reading }) => {
    let last;
    for await (const event of reading) last = event;
    assert.ok(last.error, JSON.stringify(last));
  };
  const [one, two, three] = [await open(), await open(), await open()];
  assert.equal((await json(await post(`${server.url}/abort_requests`, { request_ids: [two.id, "nobody"] }))).aborted, 1);
  await ended(two);
  assert.equal((await json(await post(`${server.url}/pause?mode=abort`, {}))).aborted, 2);
  await Promise.all([ended(one), ended(three)]);
  assert.match((await json(await post(`${server.url}/abort_requests`, {}), 400)).error.message, /request_ids/);
  assert.match((await json(await post(`${server.url}/pause?mode=later`, {}), 400)).error.message, /'mode'/);
  server.child.kill("SIGTERM");
  assert.equal((await server.exited).code, 0, "a paused server ends");
});
