// Adapters of a served model: chosen in three ways, loaded, updated and unloaded beside streams, each answer that of its own revision.
import assert from "node:assert/strict";
import path from "node:path";
import { test } from "node:test";
import { braid, sanitized, serve, temporaryFolder } from "./support/processes.mjs";
import { events, frees_everything, post, story } from "./support/client.mjs";
import { createHash } from "node:crypto";
import { mkdirSync, symlinkSync, unlinkSync, writeFileSync } from "node:fs";
import { demo } from "./support/registries.mjs";
import { config, gguf_adapter, safetensors, tensors_of, whole, write_adapter, write_whole } from "./support/adapters.mjs";

const names = ["one", "two", "three"];

async function start(t, more = []) {
  const folder = temporaryFolder(t);
  names.forEach((name, i) => write_adapter(path.join(folder, name), i + 1));
  write_adapter(path.join(folder, "late"), 9);
  const loras = names.flatMap((name) => ["--lora", `${name}=${path.join(folder, name)}`]);
  const server = await serve(t, [...loras, "--adapter-dir", folder, "--kv-memory", "128M", ...more]);
  return { server, folder };
}

const wish = { prompt: story, max_tokens: 24, temperature: 0, ignore_eos: true };

async function ask(server, fields) {
  const response = await post(`${server.url}/v1/completions`, { ...wish, ...fields });
  const answer = await response.json();
  assert.equal(response.status, 200, JSON.stringify(answer));
  return { text: answer.choices[0].text, model: answer.model, fingerprint: answer.system_fingerprint, cached: answer.usage.prompt_tokens_details?.cached_tokens };
}

async function refused(server, path, fields, status) {
  const response = await post(server.url + path, fields);
  assert.equal(response.status, status);
  return (await response.json()).error.message;
}

const unload = (server, name) => fetch(`${server.url}/v1/adapters/${name}`, { method: "DELETE" });

test("an adapter is chosen by its name, its base's with it, a field or llama-server's list", async (t) => {
  const { server } = await start(t);
  const base = await ask(server, {});
  const own = await ask(server, { model: "one" });
  assert.equal(own.model, "braid-demo:one");
  assert.notEqual(own.text, base.text);
  const { data } = await (await fetch(`${server.url}/v1/adapters`)).json();
  assert.deepEqual(data.map(({ id, base: of, rank }) => [id, of, rank]), names.map((name) => [name, "braid-demo", 4]));
  assert.ok(own.fingerprint.endsWith(`-${data[0].revision}`), "the answer says its revision");
  for (const fields of [{ model: "braid-demo:one" }, { adapter: "one" }, { adapter: { name: "one", scale: 1 } }, { lora: [{ id: 0, scale: 1 }] }])
    assert.equal((await ask(server, fields)).text, own.text, JSON.stringify(fields));
  assert.equal((await ask(server, { lora: [{ id: 0, scale: 0 }] })).text, base.text);
  const both = await ask(server, { lora: [{ id: 0, scale: 0.5 }, { id: 1, scale: 0.75 }] });
  assert.equal(both.model, "braid-demo:one+two");
  assert.equal((await ask(server, { adapter: [{ name: "one", scale: 0.5 }, { name: "two", scale: 0.75 }] })).text, both.text);

  const models = await (await fetch(`${server.url}/v1/models`)).json();
  assert.deepEqual(models.data.map(({ id, parent }) => [id, parent]), [["braid-demo", undefined], ...names.map((name) => [name, "braid-demo"])]);
  assert.equal((await (await fetch(`${server.url}/v1/models/two`)).json()).parent, "braid-demo");
  assert.deepEqual((await (await fetch(`${server.url}/lora-adapters`)).json()).map(({ id }) => id), [0, 1, 2]);
  assert.match(await refused(server, "/v1/completions", { ...wish, model: "braid-demo:nobody" }, 404), /the adapter 'nobody' is not loaded/);
  assert.match(await refused(server, "/v1/completions", { ...wish, lora: [{ id: 7 }] }, 400), /no adapter with the id 7/);
  assert.match(await refused(server, "/v1/completions", { ...wish, adapter: 3 }, 400), /adapter/);
  const tokens = await (await post(`${server.url}/tokenize`, { model: "one", prompt: "fox" })).json();
  assert.ok(tokens.tokens.length > 0, "texts are the base's");
});

test("rows of several adapters in one batch, and what is cached of them, are as alone", async (t) => {
  const { server } = await start(t);
  const wishes = Array.from({ length: 12 }, (_, i) => ({
    model: ["braid-demo", ...names][i % 4], prompt: `${story} Number ${i}.`, temperature: i % 2, seed: i, max_tokens: 30, cache_salt: "alone" }));
  const alone = [];
  for (const each of wishes) alone.push((await ask(server, each)).text);
  const again = wishes.map((each) => ({ ...each, cache_salt: "together" }));
  assert.deepEqual((await Promise.all(again.map((each) => ask(server, each)))).map(({ text }) => text), alone);
  assert.deepEqual((await Promise.all(again.map((each) => ask(server, each)))).map(({ text }) => text), alone, "from the cache");
});

test("adapters are loaded and unloaded beside streams, which end on the revision that they began with", async (t) => {
  const { server, folder } = await start(t);
  const loaded = await post(`${server.url}/v1/adapters`, { name: "late", path: "late" });
  assert.equal(loaded.status, 200);
  const first = await ask(server, { model: "late", max_tokens: 200 });
  const stream = await post(`${server.url}/v1/completions`, { ...wish, model: "late", max_tokens: 200, stream: true });
  const reading = events(stream);
  let text = (await reading.next()).value.choices[0].text;

  // Another one under the same name: nothing of the first is found in the cache, and nobody's running answer changes.
  write_adapter(path.join(folder, "late"), 77);
  assert.match(await refused(server, "/v1/adapters", { name: "late", path: "late" }, 400), /is loaded already/);
  const replaced = await (await post(`${server.url}/v1/adapters`, { name: "late", path: "late", replace: true })).json();
  const second = await ask(server, { model: "late", max_tokens: 200 });
  assert.notEqual(second.text, first.text);
  assert.ok(second.fingerprint.endsWith(replaced.revision));
  assert.equal(second.cached ?? 0, 0);
  assert.equal((await unload(server, "late")).status, 200);
  assert.equal((await unload(server, "late")).status, 404);
  assert.match(await refused(server, "/v1/completions", { ...wish, model: "late" }, 404), /'late'/);
  for await (const event of reading) if (event !== "[DONE]") text += event.choices[0]?.text ?? "";
  assert.equal(text, first.text, "the stream ended on its revision");

  write_adapter(path.join(folder, "late"), 9);
  const vllm = await post(`${server.url}/v1/load_lora_adapter`, { lora_name: "late", lora_path: path.join(folder, "late") });
  assert.equal(await vllm.text(), "Success: LoRA adapter 'late' added successfully.");
  assert.equal((await ask(server, { model: "late", max_tokens: 200 })).text, first.text);
  const gone = await post(`${server.url}/v1/unload_lora_adapter`, { lora_name: "late" });
  assert.equal(await gone.text(), "Success: LoRA adapter 'late' removed successfully.");
  await frees_everything(server.url);
});

test("a base that is loaded again has its adapters, and what has gone is nobody's", async (t) => {
  const { server } = await start(t);
  const first = await ask(server, { model: "two" });
  const { data: before } = await (await fetch(`${server.url}/v1/adapters`)).json();
  assert.equal((await unload(server, "three")).status, 200);
  const rest = async () => assert.equal((await post(`${server.url}/v1/models/unload`, { model: "braid-demo" })).status, 200);
  await rest();
  for (const name of ["two", "braid-demo:two"]) {
    const again = await ask(server, { model: name });
    assert.deepEqual([again.text, again.model, again.fingerprint], [first.text, first.model, first.fingerprint]);
    await rest();
  }
  assert.match(await refused(server, "/v1/completions", { ...wish, model: "braid-demo:three" }, 404), /'three' is not loaded/);
  assert.match(await refused(server, "/v1/completions", { ...wish, model: "three" }, 404), /'three'/);
  const { data: after } = await (await fetch(`${server.url}/v1/adapters`)).json();
  assert.deepEqual(after.map(({ id, number, revision }) => [id, number, revision]), before.slice(0, 2).map(({ id, number, revision }) => [id, number, revision]));
});

test("the registry's adapters are loaded by their names there", async (t) => {
  const folder = temporaryFolder(t);
  const server = await serve(t, ["--adapter-dir", folder, "--kv-memory", "64M"], { env: { BRAID_DATA_DIR: temporaryFolder(t) } });
  // The same matrices in both forms; rows of down_proj lie alike in both.
  const peft = Object.fromEntries(Object.entries(tensors_of(4, 0.4)).filter(([name]) => name.includes("down_proj")));
  const stored = Object.fromEntries(Object.entries(peft).map(([name, tensor]) => {
    const [, layer, part] = name.match(/layers\.(\d+)\.mlp\.down_proj\.lora_([AB])/);
    return [`blk.${layer}.ffn_down.weight.lora_${part.toLowerCase()}`, tensor];
  }));
  mkdirSync(path.join(folder, "peft"));
  writeFileSync(path.join(folder, "peft/adapter_config.json"), JSON.stringify({ ...config, target_modules: ["down_proj"] }));
  writeFileSync(path.join(folder, "peft/adapter_model.safetensors"), safetensors(peft));
  const file = gguf_adapter(stored, config.lora_alpha);
  const digest = `sha256:${createHash("sha256").update(file).digest("hex")}`;
  assert.equal((await fetch(`${server.url}/api/blobs/${digest}`, { method: "POST", body: file })).status, 201);
  const made = await post(`${server.url}/api/create`, { model: "tuning", files: { "tuning.gguf": digest }, stream: false });
  assert.equal(made.status, 200, await made.clone().text());

  assert.equal((await post(`${server.url}/v1/adapters`, { name: "folder", path: "peft" })).status, 200);
  const loaded = await post(`${server.url}/v1/adapters`, { name: "stored", registry: "tuning" });
  assert.equal(loaded.status, 200, await loaded.clone().text());
  assert.equal((await ask(server, { model: "stored" })).text, (await ask(server, { model: "folder" })).text);
  assert.notEqual((await ask(server, { model: "stored" })).text, (await ask(server, {})).text);
  assert.match(await refused(server, "/v1/adapters", { name: "x", registry: "nobody" }, 404), /nobody/);
  assert.match(await refused(server, "/v1/adapters", { name: "x", registry: "tuning", path: "peft" }, 400), /both/);
  assert.match(await refused(server, "/v1/adapters", { name: "x" }, 400), /'path' is missing/);
});

test("a model that is made with adapters answers as its base with them", async (t) => {
  const folder = temporaryFolder(t);
  const data = temporaryFolder(t);
  const server = await serve(t, ["--adapter-dir", folder, "--kv-memory", "128M"], { env: { BRAID_DATA_DIR: data } });
  const upload = async (bytes) => {
    const digest = `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
    assert.equal((await fetch(`${server.url}/api/blobs/${digest}`, { method: "POST", body: bytes })).status, 201);
    return digest;
  };
  const create = async (body, status = 200) => {
    const made = await post(`${server.url}/api/create`, { stream: false, ...body });
    assert.equal(made.status, status, await made.clone().text());
    return made.json();
  };
  const peft = Object.fromEntries(Object.entries(tensors_of(4, 0.4)).filter(([name]) => name.includes("down_proj")));
  const stored = Object.fromEntries(Object.entries(peft).map(([name, tensor]) => {
    const [, layer, part] = name.match(/layers\.(\d+)\.mlp\.down_proj\.lora_([AB])/);
    return [`blk.${layer}.ffn_down.weight.lora_${part.toLowerCase()}`, tensor];
  }));
  const settings = JSON.stringify({ ...config, target_modules: ["down_proj"] });
  mkdirSync(path.join(folder, "peft"));
  writeFileSync(path.join(folder, "peft/adapter_config.json"), settings);
  writeFileSync(path.join(folder, "peft/adapter_model.safetensors"), safetensors(peft));
  const digests = { "adapter_config.json": await upload(settings), "adapter_model.safetensors": await upload(safetensors(peft)) };
  await create({ model: "base", files: { "base.gguf": await upload(demo()) } });
  await create({ model: "of-files", from: "base", adapters: digests });
  await create({ model: "of-gguf", from: "base", adapters: { "a.gguf": await upload(gguf_adapter(stored, config.lora_alpha)) } });
  await create({ model: "kind", from: "of-files", system: "Be kind." });
  const plain = (await ask(server, { model: "base" })).text;
  assert.equal((await post(`${server.url}/v1/adapters`, { name: "folder", path: "peft", model: "base" })).status, 200);
  const tuned = (await ask(server, { model: "base:folder" })).text;
  assert.notEqual(tuned, plain);
  for (const model of ["of-files", "of-gguf", "kind"]) {
    const answer = await (await post(`${server.url}/v1/completions`, { ...wish, model })).json();
    assert.equal(answer.choices[0].text, tuned, model);
    assert.equal(answer.model, model);
  }
  assert.match((await create({ model: "x", from: "base", adapters: { "adapter_config.json": digests["adapter_config.json"] } }, 400)).error, /has two files/);
  assert.match((await create({ model: "x", from: "base", adapters: { "a.bin": digests["adapter_config.json"] } }, 400)).error, /is no adapter/);
  assert.match((await create({ model: "x", from: "of-files", adapters: digests }, 400)).error, /one adapter in PEFT's form/);

  const modelfile = path.join(folder, "Modelfile");
  writeFileSync(modelfile, "FROM base\nADAPTER ./peft\n");
  const created = await braid(t, ["create", "by-line", "-f", modelfile, "--host", server.url]);
  assert.equal(created.code, 0, created.stderr);
  assert.equal((await ask(server, { model: "by-line" })).text, tuned);
});

test("weights are updated whole and in part, and what does not fit changes nothing", async (t) => {
  const { server, folder } = await start(t);
  const update = (file) => fetch(`${server.url}/update_adapter_weights`, { method: "POST", body: file, headers: { "Content-Type": "application/octet-stream" } });
  const before = await ask(server, { model: "two" });
  const tensors = tensors_of(2);
  const name = "base_model.model.model.layers.3.self_attn.q_proj.lora_B.weight";
  const changed = { [name]: tensors_of(5)[name] };
  const answer = await (await update(safetensors(changed, { adapter: "two", partial: "true" }))).json();
  const after = await ask(server, { model: "two" });
  assert.ok(after.fingerprint.endsWith(answer.revision));
  assert.notEqual(after.fingerprint, before.fingerprint);
  const whole = await (await update(safetensors({ ...tensors, ...changed }, { adapter: "two" }))).json();
  assert.equal(whole.revision, answer.revision, "the same tensors are the same revision");
  assert.equal((await ask(server, { model: "two" })).text, after.text);

  for (const [file, what] of [[safetensors(changed, { adapter: "two" }), /is missing/], [safetensors({ x: changed[name] }, { adapter: "two", partial: "true" }), /no tensor x/],
    [safetensors({}, { adapter: "two", partial: "true" }), /holds no tensors/],
    [safetensors(changed, { adapter: "nobody" }), /'nobody' is not loaded/], [Buffer.from("garbage, and more of it"), /safetensors/]]) {
    const response = await update(file);
    assert.ok(response.status >= 400 && response.status < 500, `${response.status}`);
    assert.match((await response.json()).error.message, what);
  }
  assert.match(await refused(server, "/update_adapter_weights", { adapter: "two", path: "late", checksum: "00" }, 400), /SHA-256/);
  assert.equal((await ask(server, { model: "two" })).text, after.text);
  assert.equal((await post(`${server.url}/update_adapter_weights`, { adapter: "two", path: "two" })).status, 200);
  assert.equal((await ask(server, { model: "two" })).text, before.text);
  for (const outside of ["/etc", `${folder}/../x`, folder])
    assert.match(await refused(server, "/v1/adapters", { name: "x", path: outside }, 403), /--adapter-dir/);
  mkdirSync(path.join(folder, "linked"));
  symlinkSync("../late/adapter_config.json", path.join(folder, "linked", "adapter_config.json"));
  const file = path.join(folder, "linked", "adapter_model.safetensors"), outside = path.join(temporaryFolder(t), "of-others.safetensors");
  writeFileSync(outside, safetensors(tensors));
  symlinkSync(outside, file);
  assert.match(await refused(server, "/v1/adapters", { name: "x", path: "linked" }, 403), /'linked\/adapter_model.safetensors' lies in no folder/);
  unlinkSync(file);
  symlinkSync("../late/adapter_model.safetensors", file);
  assert.equal((await post(`${server.url}/v1/adapters`, { name: "linked", path: "linked" })).status, 200);
  assert.match(await refused(server, "/v1/adapters", { name: "braid-demo", path: "late" }, 400), /is the name of a model/);
  assert.match(await refused(server, "/v1/adapters", { name: "x", path: "nothing" }, 404), /nothing/);
  assert.match(await refused(server, "/v1/adapters", { name: "a:b", path: "late" }, 400), /colon/);
});

test("norms and matrices that an adapter brings whole are updated, and refused by their names", async (t) => {
  const { server, folder } = await start(t);
  const norm = "base_model.model.model.norm.weight", matrix = "base_model.model.model.layers.2.self_attn.k_proj.weight";
  write_whole(path.join(folder, "whole"), { [norm]: whole([512], 1), [matrix]: whole([256, 512], 2) });
  const loaded = await post(`${server.url}/v1/adapters`, { name: "whole", path: "whole" });
  assert.equal(loaded.status, 200, await loaded.clone().text());
  const base = await ask(server, {});
  const before = await ask(server, { model: "whole" });
  assert.notEqual(before.text, base.text);
  assert.deepEqual((await Promise.all([{ model: "whole" }, {}, { model: "one" }, { model: "whole" }].map((fields) => ask(server, fields)))).map(({ text }) => text),
    [before.text, base.text, (await ask(server, { model: "one" })).text, before.text], "beside others");
  const update = (tensors) => fetch(`${server.url}/update_adapter_weights`, { method: "POST", body: safetensors(tensors, { adapter: "whole", partial: "true" }) });
  const { revision } = await (await update({ [norm]: whole([512], 3) })).json();
  const after = await ask(server, { model: "whole" });
  assert.ok(after.fingerprint.endsWith(revision));
  assert.notEqual(after.text, before.text);
  for (const [tensors, what] of [[{ [norm]: whole([500], 3) }, `${norm}: found shape \\[500\\], expected 512`],
    [{ [matrix]: whole([256, 500], 3) }, `${matrix}: found shape \\[256, 500\\], expected \\[256, 512\\]`]]) {
    const response = await update(tensors);
    assert.equal(response.status, 400);
    assert.match((await response.json()).error.message, new RegExp(what));
  }
  assert.equal((await ask(server, { model: "whole" })).text, after.text);
  assert.match(await refused(server, "/v1/completions", { ...wish, adapter: { name: "whole", scale: 0.5 } }, 400), /whole weights/);
});

test("running answers of an adapter go on with its newer weights or end, and nobody else's", async (t) => {
  const { server } = await start(t, ["--speculate", "off"]);
  const update = async (seed, mode) => {
    const response = await fetch(`${server.url}/update_adapter_weights`, { method: "POST", body: safetensors(tensors_of(seed), { adapter: "three", mode }) });
    const answer = await response.json();
    assert.equal(response.status, 200, JSON.stringify(answer));
    return answer;
  };
  const long = { ...wish, max_tokens: 500, return_token_ids: true };
  const whole = async (fields) => (await (await post(`${server.url}/v1/completions`, { ...long, ...fields })).json());
  // Of which the first token has come.
  const open = async (model) => {
    const reading = events(await post(`${server.url}/v1/completions`, { ...long, model, stream: true, stream_options: { include_usage: true } }));
    const told = { tokens: [...(await reading.next()).value.choices[0].token_ids], changes: 0, error: null };
    return async () => {
      for await (const event of reading) {
        if (event === "[DONE]") continue;
        if (event.error) { told.error = event.error.message; continue; }
        told.tokens.push(...(event.choices[0]?.token_ids ?? []));
        told.changes = event.usage?.weight_changes ?? told.changes;
      }
      return told;
    };
  };
  const models = ["braid-demo", "one", "three"];
  const alone = new Map();
  for (const model of models) alone.set(model, await whole({ model }));
  const [choice] = alone.get("three").choices;
  const prompt = choice.prompt_token_ids ?? alone.get("three").prompt_token_ids;

  let streams = [];
  for (const model of models) streams.push(await open(model));
  const { revision } = await update(7, "keep");
  let [base, one, three] = await Promise.all(streams.map((read) => read()));
  for (const [model, told] of [["braid-demo", base], ["one", one]]) assert.deepEqual(told, { tokens: alone.get(model).choices[0].token_ids, changes: 0, error: null });
  assert.equal(three.changes, 1);
  assert.notDeepEqual(three.tokens, alone.get("three").choices[0].token_ids);
  // The end is what the newer weights say of all before it.
  const rest = await whole({ model: "three", prompt: [...prompt, ...three.tokens.slice(0, 480)], max_tokens: 20 });
  assert.ok(rest.system_fingerprint.endsWith(revision));
  assert.deepEqual(rest.choices[0].token_ids, three.tokens.slice(480));

  streams = [];
  for (const model of models) streams.push(await open(model));
  await update(8, "abort");
  [base, one, three] = await Promise.all(streams.map((read) => read()));
  assert.match(three.error, /adapter's weights were replaced/);
  for (const [model, told] of [["braid-demo", base], ["one", one]]) assert.deepEqual(told.tokens, alone.get(model).choices[0].token_ids);

  assert.equal((await post(`${server.url}/v1/adapters`, { name: "twin", path: "one" })).status, 200);
  streams = [await open("one"), await open("twin")];
  assert.equal((await post(`${server.url}/update_adapter_weights`, { adapter: "twin", path: "late", mode: "abort" })).status, 200);
  const [other, twin] = await Promise.all(streams.map((read) => read()));
  assert.match(twin.error, /adapter's weights were replaced/);
  assert.deepEqual([other.tokens, other.error], [alone.get("one").choices[0].token_ids, null], "the same adapter by another name");
  assert.match(await refused(server, "/update_adapter_weights", { adapter: "one", path: "late", mode: "soon" }, 400), /'mode' is 'soon'/);
  await frees_everything(server.url);
});

// 64 at once on eight adapters and the base.
test("a storm of streams on adapters that are loaded, updated, unloaded and cancelled", async (t) => {
  const steady = ["four", "five", "six", "seven"];
  const { server, folder } = await start(t, ["--max-batch", "64"]);
  for (const [i, name] of steady.entries()) {
    write_adapter(path.join(folder, name), 20 + i);
    assert.equal((await post(`${server.url}/v1/adapters`, { name, path: name })).status, 200);
  }
  const models = ["braid-demo", "one", "two", "three", ...steady, "late"];
  const revisions = new Map();  // solo answers of each, by fingerprint and wish
  const update = (seed) => fetch(`${server.url}/update_adapter_weights`, { method: "POST", body: safetensors(tensors_of(seed), { adapter: "three" }) });
  const prompts = Array.from({ length: 8 }, (_, i) => `${story} Part ${i}.`);
  const heard = [];
  let going = true;
  const clients = Array.from({ length: 64 }, async (_, client) => {
    for (let turn = 0; going; ++turn) {
      const prompt = prompts[(client + turn) % prompts.length];
      const model = turn % 3 === 0 ? "three" : models[(client * 5 + turn) % models.length];
      const body = { ...wish, prompt, model, seed: 1, temperature: 0.7 };
      if (turn % 5 === 4) {
        const abort = new AbortController();
        const stream = await post(`${server.url}/v1/completions`, { ...body, stream: true }, { signal: abort.signal });
        await stream.body.getReader().read();
        abort.abort();
        continue;
      }
      const response = await post(`${server.url}/v1/completions`, body);
      const answer = await response.json();
      if (response.status === 404) { assert.equal(model, "late"); continue; }
      assert.equal(response.status, 200, JSON.stringify(answer));
      heard.push({ model, prompt, fingerprint: answer.system_fingerprint, text: answer.choices[0].text });
    }
  });
  for (let round = 0; round < (sanitized ? 3 : 6); ++round) {
    assert.equal((await update(3 + round % 3)).status, 200);
    assert.equal((await post(`${server.url}/v1/adapters`, { name: "late", path: "late" })).status, 200);
    await ask(server, { model: "late" });
    assert.equal((await unload(server, "late")).status, 200);
  }
  going = false;
  await Promise.all(clients);
  assert.ok(heard.length > 64);
  await post(`${server.url}/v1/adapters`, { name: "late", path: "late" });
  for (const seed of [3, 4, 5]) {
    await update(seed);
    for (const model of seed === 3 ? models : ["three"])
      for (const prompt of prompts) {
        const { text, fingerprint } = await ask(server, { prompt, model, seed: 1, temperature: 0.7, cache_salt: `${seed}` });
        revisions.set(`${fingerprint} ${prompt}`, text);
      }
  }
  for (const { fingerprint, prompt, text, model } of heard) assert.equal(text, revisions.get(`${fingerprint} ${prompt}`), model);
  await frees_everything(server.url);
});
