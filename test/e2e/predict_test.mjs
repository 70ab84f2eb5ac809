// Small networks beside a language model: torch's answers, the same bits alone, together and beside a stream.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { serve, sourceFolder } from "./support/processes.mjs";
import { collect, eventually, metrics, post, story } from "./support/client.mjs";

const demo = path.join(sourceFolder, "models/demo-q8_0.gguf");
const names = ["mlp", "gru", "lstm", "convolutions", "tokens", "tokens_bf16", "tokens_f16"];
const folder = (name) => path.join(sourceFolder, "test/model/reference/networks", name);
const cases_of = (name) =>
  readFileSync(path.join(folder(name), "cases.jsonl"), "utf8").trim().split("\n").map((line) => JSON.parse(line));

const numbers_of = ({ data }) => {
  const bytes = Uint8Array.from(Buffer.from(data, "base64"));
  return new Float32Array(bytes.buffer);
};
// 1e-4 of the largest value.
function assert_close(actual, expected, what) {
  assert.deepEqual(actual.shape, expected.shape, what);
  const [ours, theirs] = [numbers_of(actual), numbers_of(expected)];
  const bound = 1e-4 * theirs.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  theirs.forEach((value, i) => assert.ok(Math.abs(ours[i] - value) <= bound, `${what}[${i}]: ${ours[i]}, torch has ${value}`));
}

async function predict(server, model, inputs, more = {}) {
  const response = await post(`${server.url}/v1/predict`, { model, inputs, encoding_format: "base64", ...more });
  const answer = await response.json();
  assert.equal(response.status, 200, JSON.stringify(answer));
  assert.equal(answer.model, model);
  assert.match(answer.revision, /^[0-9a-f]{32}$/);
  return answer.outputs;
}

test("each network answers as torch does, and with the same bits among others and beside a stream", async (t) => {
  const server = await serve(t, [demo, ...names.map(folder), "--kv-memory", "64M"]);
  const wishes = names.flatMap((name) => cases_of(name).map((each) => ({ name, ...each })));
  const alone = [];
  for (const { name, inputs, outputs } of wishes) {
    alone.push(await predict(server, name, inputs));
    for (const [output, expected] of Object.entries(outputs)) assert_close(alone.at(-1)[output], expected, `${name}.${output}`);
  }
  const stream = collect(await post(`${server.url}/v1/completions`, { prompt: story, max_tokens: 300, ignore_eos: true, stream: true }));
  const together = await Promise.all([...wishes, ...wishes].map(({ name, inputs }) => predict(server, name, inputs)));
  assert.deepEqual(together, [...alone, ...alone]);
  assert.ok((await stream).done);
});

test("a server of networks alone lists them, answers by lists and says what it is not", async (t) => {
  const server = await serve(t, [folder("mlp"), folder("gru"), "--alias", "policy", "--alias", "critic"]);
  const list = await (await fetch(`${server.url}/v1/models`)).json();
  assert.deepEqual(list.data.map((model) => model.id), ["policy", "critic"]);
  const shown = await (await fetch(`${server.url}/v1/models/critic`)).json();
  assert.equal(shown.meta.architecture, "braid-net");
  assert.equal((await fetch(`${server.url}/readyz`)).status, 200);

  const x = [[0.5, -1, 0, 0.25, 2, 1e-3, -7], [1, 2, 3, 4, 5, 6, 7]];
  const both = await (await post(`${server.url}/v1/predict`, { model: "policy", inputs: { x }, outputs: ["value", "probabilities"] })).json();
  assert.deepEqual(Object.keys(both.outputs), ["value", "probabilities"]);
  for (const row of both.outputs.probabilities) assert.ok(Math.abs(row.reduce((sum, value) => sum + value) - 1) < 1e-5);
  for (const [i, row] of x.entries()) {
    const one = await (await post(`${server.url}/predict`, { model_id: "policy", inputs: { x: [row] }, outputs: ["value"] })).json();
    assert.deepEqual(one.outputs.value, [both.outputs.value[i]]);
  }

  const faults = [
    [{ inputs: { x } }, 400, "model"],
    [{ model: "policy", inputs: {} }, 400, "inputs.x"],
    [{ model: "policy", inputs: { x: [[1, 2, 3]] } }, 400, "inputs.x"],
    [{ model: "policy", inputs: { x }, outputs: ["hn"] }, 400, "outputs[0]"],
    [{ model: "critic", inputs: { x: [[[1, 2, 3, 4, "5"]]] } }, 400, "inputs.x[0][0][4]"],
    [{ model: "actor", inputs: { x } }, 404, "model"],
  ];
  for (const [body, status, param] of faults) {
    const refused = await post(`${server.url}/v1/predict`, body);
    assert.equal(refused.status, status, JSON.stringify(body));
    assert.equal((await refused.json()).error.param, param);
  }
  const chat = await post(`${server.url}/v1/chat/completions`, { model: "policy", messages: [{ role: "user", content: "Hi" }] });
  assert.equal(chat.status, 400);
  assert.match((await chat.json()).error.message, /'policy' is a network/);
  server.child.kill("SIGTERM");
  assert.equal((await server.exited).code, 0);
});

// Named float tensors as a safetensors file, and back.
function write_file(metadata, tensors) {
  const header = { __metadata__: metadata };
  const parts = [];
  let offset = 0;
  for (const [name, { shape, data, dtype = "F32" }] of Object.entries(tensors)) {
    const bytes = Buffer.from(data, "base64");
    header[name] = { dtype: dtype === "float32" ? "F32" : dtype, shape, data_offsets: [offset, offset += bytes.length] };
    parts.push(bytes);
  }
  const text = Buffer.from(JSON.stringify(header));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.length));
  return Buffer.concat([length, text, ...parts]);
}
function read_file(bytes) {
  const length = Number(bytes.readBigUInt64LE(0));
  const { __metadata__, ...tensors } = JSON.parse(bytes.subarray(8, 8 + length).toString());
  const data = bytes.subarray(8 + length);
  for (const tensor of Object.values(tensors)) tensor.data = data.subarray(...tensor.data_offsets).toString("base64");
  return { metadata: __metadata__, tensors };
}

test("a body of tensors gives tensors with the same bits", async (t) => {
  const server = await serve(t, [folder("gru"), folder("mlp")]);
  const send = (body) => fetch(`${server.url}/v1/predict`, { method: "POST", headers: { "content-type": "application/octet-stream" }, body });
  for (const { inputs, outputs } of cases_of("gru")) {
    const expected = await predict(server, "gru", inputs);
    const response = await send(write_file({ model: "gru" }, inputs));
    assert.equal(response.status, 200, response.status === 200 ? "" : await response.clone().text());
    assert.equal(response.headers.get("content-type"), "application/octet-stream");
    const { metadata, tensors } = read_file(Buffer.from(await response.arrayBuffer()));
    assert.equal(metadata.model, "gru");
    assert.match(metadata.revision, /^[0-9a-f]{32}$/);
    assert.deepEqual(Object.keys(tensors), Object.keys(expected));
    for (const name of Object.keys(outputs)) {
      assert.equal(tensors[name].data, expected[name].data);
      assert.deepEqual(tensors[name].shape, expected[name].shape);
    }
    const some = await send(write_file({ model: "gru", outputs: Object.keys(outputs)[0] }, inputs));
    assert.deepEqual(Object.keys(read_file(Buffer.from(await some.arrayBuffer())).tensors), [Object.keys(outputs)[0]]);
  }
  const [{ inputs }] = cases_of("gru");
  const [name] = Object.keys(inputs);
  for (const [metadata, tensors, param] of [[{ model: "none" }, inputs, "model"], [{ model: "gru" }, { other: inputs[name] }, "inputs.other"],
    [{ model: "gru", outputs: "nothing" }, inputs, "outputs[0]"], [{ model: "gru" }, { [name]: { ...inputs[name], dtype: "F16" } }, `inputs.${name}.dtype`],
    [{ model: "gru" }, { [name]: { ...inputs[name], shape: [...inputs[name].shape, 7] } }, `inputs.${name}.shape`]]) {
    const response = await send(write_file(metadata, tensors));
    const { error } = await response.json();
    assert.equal(error.param, param, error.message);
    assert.ok(response.status === 400 || response.status === 404);
  }
});

test("a long prediction leaves the strand to others, and ends by its id and with its client", async (t) => {
  const server = await serve(t, [demo, folder("gru"), folder("mlp"), "--kv-memory", "64M"]);
  const steps = 600_000;
  const x = { shape: [1, steps, 5], dtype: "float32", data: Buffer.alloc(steps * 20).toString("base64") };
  const running = async () => (await metrics(server.url)).get('braid_predictions_running{model="gru"}');
  const ended = new Set();
  const begin = async (id, signal) => {
    const headers = { "Content-Type": "application/json", "X-Request-Id": id };
    const answer = post(`${server.url}/v1/predict`, { model: "gru", inputs: { x }, outputs: ["hn"] }, { headers, signal }).finally(() => ended.add(id));
    answer.catch(() => {});
    await eventually(`${id} is under way`, async () => ended.has(id) || (await running()) > 0);
    return { answer };
  };
  const one = await begin("one");
  const [stream, other, short] = await Promise.all([
    post(`${server.url}/v1/completions`, { prompt: story, max_tokens: 20, ignore_eos: true, stream: true }).then(collect),
    predict(server, "mlp", { x: [[1, 2, 3, 4, 5, 6, 7]] }),
    predict(server, "gru", { x: [[[1, 2, 3, 4, 5]]] }),
  ]);
  assert.ok(stream.done && other.logits && short.hn);
  assert.ok(!ended.has("one"), "none of them waited for its end");
  assert.equal((await post(`${server.url}/v1/abort`, { id: "nobody" })).status, 404);
  assert.equal((await post(`${server.url}/v1/abort`, { id: "one" })).status, 200);
  const aborted = await one.answer;
  assert.equal(aborted.status, 499);
  assert.match((await aborted.json()).error.message, /aborted/);
  await eventually("nothing runs", async () => (await running()) === 0);
  const leaving = new AbortController();
  const two = await begin("two", leaving.signal);
  leaving.abort();
  await assert.rejects(two.answer);
  await eventually("nothing runs", async () => (await running()) === 0);
});
