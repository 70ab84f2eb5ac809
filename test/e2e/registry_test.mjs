// The models of this machine: made, copied, removed, pulled and pushed with the official ollama package.
import assert from "node:assert/strict";
import { copyFileSync, existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { Ollama } from "ollama";
import { braid, serve, temporaryFolder } from "./support/processes.mjs";
import { eventually, post } from "./support/client.mjs";
import { recurrentModel } from "./support/recurrent_model.mjs";
import { certificate, demo, digestOf, hub, proxy, registry } from "./support/registries.mjs";

const blobsOf = (data) => readdirSync(path.join(data, "blobs")).sort();
const namesOf = async (client) => (await client.list()).models.map((model) => model.name);

// A server with nothing but the embedded model, and what talks to it.
async function start(t, args = [], env = {}) {
  const data = env.BRAID_DATA_DIR ?? temporaryFolder(t);
  const server = await serve(t, args, { env: { ...env, BRAID_DATA_DIR: data } });
  return { server, data, client: new Ollama({ host: server.url }) };
}

// A model "base" of uploaded weights.
async function makeBase(server, client) {
  const digest = digestOf(demo());
  assert.equal((await fetch(`${server.url}/api/blobs/${digest}`, { method: "HEAD" })).status, 404);
  assert.equal((await fetch(`${server.url}/api/blobs/${digest}`, { method: "POST", body: demo() })).status, 201);
  assert.equal((await fetch(`${server.url}/api/blobs/${digest}`, { method: "HEAD" })).status, 200);
  assert.deepEqual(await client.create({ model: "base", files: { "base.gguf": digest } }), { status: "success" });
}

test("a model is made of uploaded weights, and others from it", async (t) => {
  const { server, client, data } = await start(t);
  await makeBase(server, client);
  const steps = [];
  const made = await client.create({ model: "kind", from: "base", system: "Be kind.", template: "{{ .Prompt }}", license: ["free"],
    parameters: { temperature: 0.5, stop: ["a", "b c"] }, messages: [{ role: "user", content: "hello" }], stream: true });
  for await (const step of made) steps.push(step.status);
  assert.equal(steps.at(-1), "success");
  assert.ok(steps.some((step) => step.startsWith("using existing layer sha256:")));
  const shown = await client.show({ model: "kind" });
  assert.equal(shown.system, "Be kind.");
  assert.equal(shown.template, "{{ .Prompt }}");
  assert.equal(shown.license, "free");
  assert.equal(shown.parameters, 'temperature 0.5\nstop a\nstop "b c"');
  assert.equal(shown.details.parent_model, "base:latest");
  assert.equal(shown.details.family, "llama");
  assert.equal(shown.details.quantization_level, "Q8_0");
  assert.deepEqual(shown.messages, [{ role: "user", content: "hello" }]);
  assert.equal(shown.model_info["general.architecture"], "llama");
  assert.equal(shown.model_info["tokenizer.ggml.tokens"], null);
  assert.match(shown.modelfile, /^FROM kind:latest$/m);
  assert.ok(shown.capabilities.includes("completion"));
  const verbose = await (await post(`${server.url}/api/show`, { model: "kind", verbose: true })).json();
  assert.ok(verbose.model_info["tokenizer.ggml.tokens"].length > 100);
  assert.ok(verbose.tensors.some((tensor) => tensor.name === "token_embd.weight"));

  await client.copy({ source: "kind", destination: "other/kind:v2" });
  assert.deepEqual((await namesOf(client)).sort(), ["base:latest", "braid-demo", "kind:latest", "other/kind:v2"]);
  const listed = await (await fetch(`${server.url}/v1/registry?name=kind&capability=completion`)).json();
  assert.deepEqual(listed.data.map((model) => [model.id, model.aliases]).sort(), [["kind:latest", ["other/kind:v2"]], ["other/kind:v2", ["kind:latest"]]]);
  assert.deepEqual((await (await fetch(`${server.url}/v1/registry?architecture=gemma`)).json()).data, []);

  const before = blobsOf(data).length;
  await client.delete({ model: "kind" });
  assert.equal(blobsOf(data).length, before);  // the copy has them
  await client.delete({ model: "other/kind:v2" });
  assert.deepEqual(blobsOf(data).filter((name) => name === digestOf(demo()).replace(":", "-")).length, 1);
  await client.delete({ model: "base" });
  assert.deepEqual(blobsOf(data), []);
  await assert.rejects(client.delete({ model: "base" }), { status_code: 404 });
});

test("what has been made answers, as its maker wants", async (t) => {
  const { server, client } = await start(t, ["--kv-memory", "256M"]);
  await makeBase(server, client);
  const messages = [{ role: "user", content: "What is 17 + 25?" }];
  const exact = { temperature: 0, repeat_penalty: 1 };
  assert.equal((await client.chat({ model: "base", messages, options: exact })).message.content, "17 + 25 = 42.");
  const used = (await (await fetch(`${server.url}/v1/registry`)).json()).data.map((model) => [model.id, model.last_used > 0]);
  assert.deepEqual(used, [["base:latest", true]]);
  await client.create({ model: "short", from: "base", parameters: { ...exact, num_predict: 3 } });
  const short = await client.chat({ model: "short", messages });
  assert.equal(short.eval_count, 3);
  assert.equal(short.done_reason, "length");
  assert.equal((await client.chat({ model: "short:latest", messages, options: { num_predict: 50 } })).message.content, "17 + 25 = 42.");
  const listed = await (await fetch(`${server.url}/v1/models`)).json();
  assert.ok(listed.data.some((model) => model.id === "short"));
  assert.ok((await client.ps()).models.some((model) => model.name === "short"));
  await client.generate({ model: "short", prompt: "", keep_alive: 0 });
  await client.delete({ model: "short" });
  await eventually("it is gone", async () => (await post(`${server.url}/api/chat`, { model: "short", messages, stream: false })).status === 404);
});

test("a template in Go's form writes the chats of what was made with it", async (t) => {
  const { server, client } = await start(t, ["--kv-memory", "256M"]);
  await makeBase(server, client);
  const template = '{{ if .System }}<|im_start|>system\n{{ .System }}<|im_end|>\n{{ end }}{{ if .Prompt }}<|im_start|>user\n{{ .Prompt }}<|im_end|>\n{{ end }}<|im_start|>assistant\n{{ .Response }}<|im_end|>\n';
  const exact = { temperature: 0, repeat_penalty: 1 };
  const messages = [{ role: "user", content: "What is 17 + 25?" }];
  await client.create({ model: "same", from: "base", template, parameters: exact });
  assert.equal((await client.chat({ model: "same", messages })).message.content, "17 + 25 = 42.");
  await client.create({ model: "other", from: "base", template: '{{ range .Messages }}[{{ .Role }}] {{ .Content }}{{ end }} {{ json .Tools }}', parameters: exact });
  const rendered = await (await post(`${server.url}/apply-template`, { model: "other", messages })).json();
  assert.equal(rendered.prompt, "[user] What is 17 + 25? null");
  const long = [{ role: "system", content: "Be brief." }, ...messages, { role: "assistant", content: "42" }, { role: "user", content: "Sure?" }];
  const turns = await (await post(`${server.url}/apply-template`, { model: "same", messages: long })).json();
  assert.equal(turns.prompt, "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nWhat is 17 + 25?<|im_end|>\n<|im_start|>assistant\n42<|im_end|>\n" +
    "<|im_start|>user\nSure?<|im_end|>\n<|im_start|>assistant\n");
});

test("what a model of the registry has computed is found on disk by the next server", async (t) => {
  const disk = temporaryFolder(t);
  const data = temporaryFolder(t);
  const args = ["--kv-memory", "256M", "--kv-disk", disk, "--kv-disk-write", "through", "--kv-disk-read", "always"];
  const ask = async (server) => (await (await post(`${server.url}/v1/completions`, {
    model: "base", prompt: "Once upon a time, a brave fox named Luna lived in the castle. ".repeat(4), max_tokens: 8, temperature: 0 })).json());
  const first = await start(t, args, { BRAID_DATA_DIR: data });
  await makeBase(first.server, first.client);
  const cold = await ask(first.server);
  assert.equal(cold.usage.prompt_tokens_details.cached_tokens, 0);
  assert.ok(existsSync(path.join(disk, "base")), "a folder of its own");
  first.server.child.kill("SIGTERM");
  await first.server.exited;
  const second = await start(t, args, { BRAID_DATA_DIR: data });
  const warm = await ask(second.server);
  assert.ok(warm.usage.prompt_tokens_details.cached_tokens > 0);
  assert.equal(warm.choices[0].text, cold.choices[0].text);
});

test("a file that is copied into a watched folder can be asked for, once it is whole", async (t) => {
  const models = temporaryFolder(t);
  const { server, client } = await start(t, ["--models-dir", models, "--kv-memory", "256M"]);
  const file = path.join(models, "copied.gguf");
  writeFileSync(file, demo().subarray(0, 1_000_000));
  const ids = async () => (await (await fetch(`${server.url}/v1/registry`)).json()).data.map((model) => model.id);
  assert.deepEqual(await ids(), []);
  writeFileSync(file, demo());
  await eventually("it is found", async () => (await ids()).includes("copied:latest"));
  const answer = await client.chat({ model: "copied", messages: [{ role: "user", content: "What is 17 + 25?" }], options: { temperature: 0, repeat_penalty: 1 } });
  assert.equal(answer.message.content, "17 + 25 = 42.");
  rmSync(file);
  await eventually("it is gone", async () => (await ids()).length === 0);
});

test("what cannot be made says why, and leaves nothing", async (t) => {
  const { server, client, data } = await start(t);
  await makeBase(server, client);
  const before = blobsOf(data);
  const refused = async (body, status, pattern) => {
    const answer = await post(`${server.url}/api/create`, { stream: false, ...body });
    assert.equal(answer.status, status, JSON.stringify(body));
    assert.match((await answer.json()).error, pattern);
  };
  await refused({ model: "x", from: "bass" }, 404, /model 'bass' not found; there is base:latest; nothing is downloaded/);
  await refused({ model: "../x", from: "base" }, 400, /is no name of a model/);
  await refused({ model: "x" }, 400, /give one of the two/);
  await refused({ model: "x", files: { "a.gguf": `sha256:${"0".repeat(64)}` } }, 400, /has not been uploaded/);
  await refused({ model: "x", files: { "../../a": digestOf(demo()) } }, 400, /no plain name/);
  await refused({ model: "x", from: "base", messages: [{ role: "user" }] }, 400, /'messages\[0\].content' is missing/);
  await refused({ model: "x", from: "base", parameters: { stop: {} } }, 400, /the parameter 'stop'/);
  await refused({ model: "x", from: "base", adapters: { a: `sha256:${"0".repeat(64)}` } }, 400, /has not been uploaded/);
  await refused({ model: "x", from: "base", quantize: "q0" }, 400, /'q0' is no quantisation/);
  await refused({ model: "x", from: "base", template: "a\n{{ if .Prompt }}" }, 400, /'template' cannot be used: the template, line 2: a block has no end/);
  await assert.rejects(client.create({ model: "x", from: "nothing" }), /not found/);
  const wrong = await fetch(`${server.url}/api/blobs/sha256:${"1".repeat(64)}`, { method: "POST", body: "abc" });
  assert.equal(wrong.status, 400);
  assert.match((await wrong.json()).error, /have the digest sha256:ba7816bf/);
  assert.equal((await fetch(`${server.url}/api/blobs/sha256:..%2F..%2Fx`, { method: "POST", body: "abc" })).status, 400);
  assert.deepEqual(blobsOf(data), before);
  assert.deepEqual((await namesOf(client)).sort(), ["base:latest", "braid-demo"]);
});

test("weights are rounded on the way", async (t) => {
  const { server, client } = await start(t);
  await makeBase(server, client);
  await client.create({ model: "full", from: "base", quantize: "q4_0", stream: false }).then(
    () => assert.fail("what is rounded already is not rounded again"), (error) => assert.match(error.message, /already/));
});

test("weights in floats are rounded on the way, those of a folder and those of a file", async (t) => {
  const { server, client } = await start(t, ["--kv-memory", "64M"]);
  const upload = async (file) => {
    const bytes = readFileSync(file), digest = digestOf(bytes);
    assert.equal((await fetch(`${server.url}/api/blobs/${digest}`, { method: "POST", body: bytes })).status, 201);
    return digest;
  };
  const folder = recurrentModel(t);
  const files = {};
  for (const name of ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"]) files[name] = await upload(path.join(folder, name));
  const steps = [];
  for await (const step of await client.create({ model: "of-folder", files, quantize: "q8_0", stream: true })) steps.push(step.status);
  assert.ok(steps.includes("quantizing to q8_0"), steps.join());
  const half = path.join(temporaryFolder(t), "half.gguf");
  const converted = await braid(t, ["convert", folder, half, "--type", "f16"]);
  assert.equal(converted.code, 0, converted.stderr);
  await client.create({ model: "half", files: { "half.gguf": await upload(half) } });
  assert.match((await client.show({ model: "half" })).details.quantization_level, /F16/i);
  await client.create({ model: "of-file", from: "half", quantize: "Q8_0" });
  for (const model of ["of-folder", "of-file"]) {
    const { details } = await client.show({ model });
    assert.deepEqual([details.format, details.quantization_level], ["gguf", "Q8_0"], model);
    const answer = await client.generate({ model, prompt: "abc", raw: true, options: { num_predict: 3, temperature: 0 } });
    assert.ok(answer.done && answer.eval_count > 0);
  }
});

test("who may change what is here is an administrator", async (t) => {
  const keys = path.join(temporaryFolder(t), "keys");
  writeFileSync(keys, "boss sk-boss administrator\nuser sk-user\n");
  const { server } = await start(t, ["--api-key-file", keys]);
  const status = async (method, route, key, body = "{}") =>
    (await fetch(server.url + route, { method, headers: { Authorization: `Bearer ${key}` }, ...(method === "HEAD" ? {} : { body }) })).status;
  for (const [method, route] of [["POST", "/api/create"], ["POST", "/api/pull"], ["POST", "/api/push"], ["POST", "/api/copy"], ["DELETE", "/api/delete"],
    ["HEAD", `/api/blobs/sha256:${"0".repeat(64)}`], ["POST", `/api/blobs/sha256:${"0".repeat(64)}`]]) {
    assert.equal(await status(method, route, "sk-user"), 403, route);
    assert.notEqual(await status(method, route, "sk-boss"), 403, route);
  }
  assert.equal((await fetch(`${server.url}/v1/registry`, { headers: { Authorization: "Bearer sk-user" } })).status, 200);
});

test("a model is pulled in ranges, and is there when all of it is", async (t) => {
  const source = await registry(t);
  source.put("library/demo:1b", demo(), "Be brief.");
  const { client, data } = await start(t, [], { BRAID_REGISTRY_MIRROR: source.url });
  const steps = [];
  for await (const step of await client.pull({ model: "demo:1b", stream: true })) steps.push(step);
  assert.equal(steps[0].status, "pulling manifest");
  assert.equal(steps.at(-1).status, "success");
  const last = steps.filter((step) => step.digest === digestOf(demo())).at(-1);
  assert.equal(last.completed, last.total);
  assert.equal(last.total, demo().length);
  assert.equal((await client.show({ model: "demo:1b" })).system, "Be brief.");
  assert.deepEqual(await namesOf(client), ["braid-demo", "demo:1b"]);
  assert.ok(blobsOf(data).every((name) => /^sha256-[0-9a-f]{64}$/.test(name)));
  const asked = source.requests.length;
  await client.pull({ model: "demo:1b" });
  assert.equal(source.requests.length, asked + 1);  // the manifest alone
  await assert.rejects(client.pull({ model: "demo:2b" }), /has no manifest of demo:2b/);
});

test("connections that break, and servers that are busy, are asked once more", async (t) => {
  const source = await registry(t);
  source.put("library/demo:latest", demo());
  Object.assign(source.faults, { cuts: 3, cutAfter: 3_000_000, statuses: [503] });
  const { client } = await start(t, [], { BRAID_REGISTRY_MIRROR: source.url });
  await client.pull({ model: "demo" });
  const ranges = source.requests.filter((request) => request.url.endsWith(digestOf(demo()))).map((request) => request.range);
  assert.equal(ranges.length, 5);
  assert.ok(ranges.slice(2).every((range) => !range.startsWith("bytes=0-")), ranges.join());  // each goes on where the one before was
});

test("a server without ranges sends it all", async (t) => {
  const source = await registry(t);
  source.put("library/demo:latest", demo());
  Object.assign(source.faults, { noRanges: true, cuts: 1, cutAfter: 3_000_000 });
  const { client } = await start(t, [], { BRAID_REGISTRY_MIRROR: source.url });
  await client.pull({ model: "demo" });
  assert.ok((await namesOf(client)).includes("demo:latest"));
});

test("wrong bytes, short files and manifests that lie become no model", async (t) => {
  const source = await registry(t);
  const { client, data } = await start(t, [], { BRAID_REGISTRY_MIRROR: source.url });
  const manifest = source.put("library/demo:latest", demo());
  source.faults.wrong = true;
  await assert.rejects(client.pull({ model: "demo" }), /has the digest sha256:.*it has been removed/);
  source.faults.wrong = false;
  source.faults.short = 1000;
  await assert.rejects(client.pull({ model: "demo" }), /shorter than it was said to be|ends too early/);
  source.faults.short = 0;
  const longer = structuredClone(manifest);
  longer.layers[0].size -= 1000;
  source.models.set("library/demo:latest", JSON.stringify(longer));
  await assert.rejects(client.pull({ model: "demo" }), /longer than it was said to be|has the digest/);
  for (const layer of [{ digest: "sha256:../../../etc/passwd" }, { size: -1 }, { mediaType: "application/vnd.ollama.image.file", name: "../x" }]) {
    const lying = structuredClone(manifest);
    Object.assign(lying.layers[0], layer);
    source.models.set("library/demo:latest", JSON.stringify(lying));
    await assert.rejects(client.pull({ model: "demo" }), /the manifest of demo:latest has a/);
  }
  for (const text of ["", "[]", "{", "x".repeat(5_000_000)]) {
    source.models.set("library/demo:latest", text);
    await assert.rejects(client.pull({ model: "demo" }));
  }
  assert.deepEqual(await namesOf(client), ["braid-demo"]);
  assert.ok(!existsSync(path.join(data, "manifests/registry.ollama.ai")));
});

test("over TLS, with a token that anybody gets; without encryption only where that is allowed", async (t) => {
  const tls = await certificate(t);
  const source = await registry(t, { tls, token: true });
  source.put("a/demo:latest", demo());
  const { client } = await start(t, ["--ca-file", tls.cert]);
  await client.pull({ model: `${source.host}/a/demo` });
  assert.ok((await namesOf(client)).includes(`${source.host}/a/demo:latest`));
  const { client: stranger } = await start(t);
  await assert.rejects(stranger.pull({ model: `${source.host}/a/demo` }), /name who vouches for it with --ca-file/);
  const plain = await registry(t);
  plain.put("a/demo:latest", demo());
  await assert.rejects(client.pull({ model: `http://${plain.host}/a/demo` }), /without encryption/);
  await client.pull({ model: `http://${plain.host}/a/demo`, insecure: true });
});

test("through the proxies of the environment, and past them where it says so", async (t) => {
  const none = { http_proxy: "", https_proxy: "", HTTPS_PROXY: "", all_proxy: "", ALL_PROXY: "", no_proxy: "", NO_PROXY: "" };
  const plain = await registry(t);
  plain.put("library/demo:latest", demo(), "Be brief.");
  const between = await proxy(t, { credentials: "name:secret" });
  const { client } = await start(t, [], { ...none, BRAID_REGISTRY_MIRROR: plain.url, http_proxy: `http://name:secret@${between.host}` });
  await client.pull({ model: "demo" });
  assert.ok((await namesOf(client)).includes("demo:latest"));
  assert.equal(between.asked.length, plain.requests.length, "every request went through it");
  assert.ok(between.asked.every((line) => line.includes(plain.url)));

  const tls = await certificate(t);
  const secret = await registry(t, { tls });
  secret.put("a/demo:latest", demo());
  const tunnel = await proxy(t);
  const { client: careful } = await start(t, ["--ca-file", tls.cert], { ...none, https_proxy: `http://${tunnel.host}` });
  await careful.pull({ model: `${secret.host}/a/demo` });
  assert.ok(tunnel.asked.length > 0 && tunnel.asked.every((line) => line === `CONNECT ${secret.host}`), "it sees no more than the host");

  const before = between.asked.length;
  const { client: direct } = await start(t, [], { ...none, BRAID_REGISTRY_MIRROR: plain.url, http_proxy: `http://${between.host}`, no_proxy: "127.0.0.1" });
  await direct.pull({ model: "demo" });
  assert.equal(between.asked.length, before);

  const { client: stranger } = await start(t, [], { ...none, BRAID_REGISTRY_MIRROR: plain.url, http_proxy: `http://${between.host}` });
  await assert.rejects(stranger.pull({ model: "demo" }), /407|proxy/i);
  assert.deepEqual(await namesOf(stranger), ["braid-demo"]);
});

test("from a hub: by quantisation, with its token, strict about names", async (t) => {
  const other = Buffer.concat([demo(), Buffer.alloc(32)]);
  const files = { "README.md": Buffer.from("hello"), "demo-Q8_0.gguf": demo(), "demo-Q4_K_M.gguf": other };
  const source = await hub(t, files, { token: "hf_secret" });
  source.extra.push({ type: "file", path: "../../evil-Q2_K.gguf", size: 3, oid: "0", lfs: { oid: "0".repeat(64), size: 3 } });
  const { client, data } = await start(t, [], { HF_ENDPOINT: source.url, HF_TOKEN: "hf_secret" });
  await client.pull({ model: "hf.co/owner/name:q8_0" });
  const [, listed] = (await client.list()).models;
  assert.equal(listed.name, "hf.co/owner/name:q8_0");
  assert.ok(blobsOf(data).includes(`sha256-${digestOf(demo()).slice(7)}`));
  await assert.rejects(client.pull({ model: "hf.co/owner/name:Q2_K" }), /has no Q2_K; it has Q4_K_M, Q8_0/);
  await assert.rejects(client.pull({ model: "hf.co/owner/none" }), /has no owner\/none/);
  const { client: stranger } = await start(t, [], { HF_ENDPOINT: source.url });
  await assert.rejects(stranger.pull({ model: "hf.co/owner/name" }), /HF_TOKEN/);
});

test("a pull that is killed goes on where it was", async (t) => {
  const source = await registry(t);
  source.put("library/demo:latest", demo());
  Object.assign(source.faults, { delay: 20, step: 512 * 1024 });
  const data = temporaryFolder(t);
  const blob = digestOf(demo()).replace(":", "-");
  for (let round = 0; round < 3; ++round) {
    const { server, client } = await start(t, ["--no-model"], { BRAID_REGISTRY_MIRROR: source.url, BRAID_DATA_DIR: data });
    assert.deepEqual(await namesOf(client), []);
    const pulled = round * 6_000_000;
    await assert.rejects((async () => {
      for await (const step of await client.pull({ model: "demo", stream: true })) if (step.completed > pulled + 4_000_000) server.child.kill("SIGKILL");
    })());
    await server.exited;
    assert.ok(!existsSync(path.join(data, "blobs", blob)));
  }
  const before = source.requests.length;
  const { client } = await start(t, ["--no-model"], { BRAID_REGISTRY_MIRROR: source.url, BRAID_DATA_DIR: data });
  await client.pull({ model: "demo" });
  assert.equal(digestOf(readFileSync(path.join(data, "blobs", blob))), digestOf(demo()));
  const range = source.requests.slice(before).find((request) => request.url.endsWith(digestOf(demo()))).range;
  assert.ok(Number(range.match(/bytes=(\d+)-/)[1]) > 4_000_000, range);
});

test("a client that goes ends its pull, and the next one goes on", async (t) => {
  const source = await registry(t);
  source.put("library/demo:latest", demo());
  Object.assign(source.faults, { delay: 30, step: 256 * 1024 });
  const { client } = await start(t, [], { BRAID_REGISTRY_MIRROR: source.url });
  const stream = await client.pull({ model: "demo", stream: true });
  await assert.rejects(async () => { for await (const step of stream) if (step.completed > 1_000_000) stream.abort(); }, { name: "AbortError" });
  source.faults.delay = 0;
  await client.pull({ model: "demo" });
  assert.ok((await namesOf(client)).includes("demo:latest"));
});

test("a model is pushed, and pulled from there by another", async (t) => {
  const target = await registry(t);
  const { server, client } = await start(t);
  await makeBase(server, client);
  const name = `${target.host}/me/base`;
  await client.copy({ source: "base", destination: name });
  await assert.rejects(client.push({ model: name }), /https?:\/\//);
  await client.push({ model: `http://${name}`, insecure: true });
  assert.ok(target.models.has("me/base:latest"));
  const { client: other } = await start(t);
  await other.pull({ model: `http://${name}`, insecure: true });
  assert.ok((await namesOf(other)).includes(`${name}:latest`));
});

test("a registry with accounts knows this machine by its key", async (t) => {
  const keys = new Set();
  const target = await registry(t, { keys });
  const tokens = () => target.requests.filter((request) => request.url.startsWith("/token"));
  const { server, client, data } = await start(t);
  await makeBase(server, client);
  const model = `http://${target.host}/me/base`;
  await client.copy({ source: "base", destination: model.slice(7) });
  await assert.rejects(client.push({ model, insecure: true }), /gives no token for .*; .*`braid key` makes a key/);
  assert.ok(tokens().every((request) => !request.authorization), "nobody is told anything before there is a key");

  const env = { ...process.env, BRAID_DATA_DIR: data };
  const key = await braid(t, ["key"], { env });
  assert.match(key.stdout, /^ssh-ed25519 AAAA[\w+/]{64}$/);
  assert.equal((await braid(t, ["key", "--json"], { env })).stdout, JSON.stringify({ public_key: key.stdout }));
  assert.equal((await braid(t, ["key", "--host", server.url], { env })).code, 2);
  assert.equal(statSync(path.join(data, "id_ed25519")).mode & 0o777, 0o600);
  await assert.rejects(client.push({ model, insecure: true }), (error) => error.message.includes(key.stdout), "for whoever has an account there");
  keys.add(key.stdout);
  await client.push({ model, insecure: true });
  assert.ok(target.models.has("me/base:latest"));

  const other = await start(t);
  await assert.rejects(other.client.pull({ model, insecure: true }), /gives no token/);
  copyFileSync(path.join(data, "id_ed25519"), path.join(other.data, "id_ed25519"));
  await other.client.pull({ model, insecure: true });
  assert.ok((await namesOf(other.client)).includes(`${target.host}/me/base:latest`));
  writeFileSync(path.join(other.data, "id_ed25519"), "no key");
  await assert.rejects(other.client.pull({ model, insecure: true }), /id_ed25519: no key of the kind that/);
});

test("a key signs for the registry itself, not for another host that it names", async (t) => {
  const elsewhere = await registry(t, { token: true });
  const source = await registry(t, { token: true, realm: () => elsewhere.url.replace("127.0.0.1", "localhost") });
  source.put("a/demo:latest", demo());
  const { client, data } = await start(t);
  assert.equal((await braid(t, ["key"], { env: { ...process.env, BRAID_DATA_DIR: data } })).code, 0);
  await client.pull({ model: `http://${source.host}/a/demo`, insecure: true });
  assert.equal(elsewhere.requests.length, 1);
  assert.equal(elsewhere.requests[0].authorization, undefined);
  await client.pull({ model: `http://${source.host}/a/demo`, insecure: true });
});

test("a damaged database is made again", async (t) => {
  const data = temporaryFolder(t);
  const first = await start(t, [], { BRAID_DATA_DIR: data });
  await makeBase(first.server, first.client);
  first.server.child.kill("SIGKILL");
  await first.server.exited;
  writeFileSync(path.join(data, "registry.db"), "this is no database, and long enough to be looked at as one".repeat(100));
  rmSync(path.join(data, "registry.db-wal"), { force: true });
  const second = await start(t, [], { BRAID_DATA_DIR: data });
  assert.ok((await namesOf(second.client)).includes("base:latest"));
  assert.ok(readdirSync(data).some((name) => name.startsWith("registry.db.damaged-")));
});
