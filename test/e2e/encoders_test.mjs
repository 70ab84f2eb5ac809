// Models that read whole texts: vectors, ranks, classes and scores over HTTP against what transformers gives, the same bits alone, together
// and beside a stream, and through SDKs.
import assert from "node:assert/strict";
import { cpSync, readFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import OpenAI from "openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { embedMany } from "ai";
import { CohereClient, CohereClientV2 } from "cohere-ai";
import { OpenAIEmbeddings } from "@langchain/openai";
import { safetensors, tensors_in } from "./support/adapters.mjs";
import { write_bert_file } from "./support/encoder_file.mjs";
import { braid, serve, sourceFolder, temporaryFolder } from "./support/processes.mjs";
import { collect, eventually, metrics, post, story } from "./support/client.mjs";

const demo = path.join(sourceFolder, "models/demo-q8_0.gguf");
const folder = (name) => path.join(sourceFolder, "test/model/reference/encoders", name);
const adapter_folder = (name) => path.join(sourceFolder, "test/model/reference/encoder_adapters", name);
const references_of = (name) => JSON.parse(readFileSync(path.join(folder(name), "reference.json"), "utf8"));
const length_of = (vector) => Math.hypot(...vector);

const vectors = ["bert", "bert-cls", "bert-dense", "roberta", "distilbert", "mpnet", "nomic-bert", "modernbert", "electra", "jina-v3", "gemma3",
  "qwen3", "jina-v2", "jina-v2-code", "nomic-moe", "gte"];
const rankers = ["bert-rank", "xlm-roberta-rank", "gte-rank"];
const classifiers = ["bert-labels", "distilbert-labels", "modernbert-labels", "qwen3-labels"];

async function ask(server, route, body, status = 200) {
  const response = await post(server.url + route, body);
  const answer = await response.json();
  assert.equal(response.status, status, `${route}: ${JSON.stringify(answer)}`);
  return answer;
}

function assert_close(actual, expected, bound, what) {
  assert.equal(actual.length, expected.length, what);
  expected.forEach((value, i) => assert.ok(Math.abs(actual[i] - value) <= bound, `${what}[${i}]: ${actual[i]}, transformers has ${value}`));
}

const softmax = (x) => { const e = x.map((v) => Math.exp(v - Math.max(...x))); const sum = e.reduce((a, b) => a + b); return e.map((v) => v / sum); };
const sigmoid = (x) => 1 / (1 + Math.exp(-x));

test("vectors are those of transformers, and the same bits alone, in a batch of 64 and beside a stream", async (t) => {
  const server = await serve(t, [demo, ...vectors.map(folder), "--kv-memory", "256M"]);
  const before = new Map();
  for (const name of vectors) {
    // Decoders compute in 8 bits what is stored in bf16; the references are float32.
    const bound = name === "qwen3" ? 3e-2 : 1e-4;
    for (const { text, vector } of references_of(name)) {
      const answer = await ask(server, "/v1/embeddings", { model: name, input: text });
      assert_close(answer.data[0].embedding, vector, bound * length_of(vector), `${name}: ${text.slice(0, 20)}`);
      before.set(name + text, answer.data[0].embedding);
    }
  }
  const stream = collect(await post(`${server.url}/v1/completions`, { model: "demo-q8_0", prompt: story, max_tokens: 300, ignore_eos: true, stream: true }));
  await Promise.all(vectors.map(async (name) => {
    const references = references_of(name);
    const input = Array.from({ length: 64 }, (_, i) => references[i % references.length].text);
    const { data, usage } = await ask(server, "/v1/embeddings", { model: name, input });
    data.forEach(({ embedding, index }) => assert.deepEqual(embedding, before.get(name + input[index]), `${name} ${index}`));
    assert.ok(usage.prompt_tokens > 64 && usage.total_tokens === usage.prompt_tokens);
  }));
  assert.ok((await stream).done);
});

test("a long batch of texts leaves the strand to a stream", async (t) => {
  const server = await serve(t, [demo, folder("bert"), "--max-waiting", "5000", "--kv-memory", "64M"]);
  const input = Array.from({ length: 1024 }, (_, i) => `${"the river runs ".repeat(20)}${i}`);
  let ended = 0;
  const batches = [1, 2, 3, 4].map(() => ask(server, "/v1/embeddings", { model: "bert", input }).finally(() => { ended += 1; }));
  await eventually("they are under way", async () => (await metrics(server.url)).get('braid_sequences_prefilling{model="bert"}') > 0);
  const stream = await collect(await post(`${server.url}/v1/completions`, { model: "demo-q8_0", prompt: story, max_tokens: 20, ignore_eos: true, stream: true }));
  assert.ok(stream.done);
  assert.ok(ended < 4, "the stream has not waited for them all");
  const answers = await Promise.all(batches);
  for (const { data } of answers) assert.deepEqual(data, answers[0].data);
});

test("what a request says of its vectors holds", async (t) => {
  const server = await serve(t, [folder("bert"), folder("bert-cls"), "--max-waiting", "100"]);
  const embed = async (body) => (await ask(server, "/v1/embeddings", { model: "bert", ...body })).data[0].embedding;
  const whole = await embed({ input: "the river" });
  const short = await embed({ input: "the river", dimensions: 8 });
  const scale = length_of(whole.slice(0, 8));
  assert_close(short, whole.slice(0, 8).map((value) => value / scale), 1e-6, "dimensions");
  assert.ok(Math.abs(length_of(await embed({ input: "the river", normalize: false })) - 1) > 1e-3);
  assert.ok(Math.abs(length_of(await embed({ model: "bert-cls", input: "the river" })) - 1) > 1e-3, "the folder has no Normalize");
  assert.ok(Math.abs(length_of(await embed({ model: "bert-cls", input: "the river", normalize: true })) - 1) < 1e-5);
  assert.deepEqual(await embed({ input: "the river", prompt_name: "query" }), await embed({ input: "what is the river" }));
  const { tokens } = await ask(server, "/tokenize", { model: "bert", prompt: "the river" });
  assert.deepEqual(await embed({ input: [tokens] }), whole);
  const long = "the river runs ".repeat(60);
  const refused = await ask(server, "/v1/embeddings", { model: "bert", input: long }, 400);
  assert.equal(refused.error.code, "context_length_exceeded");
  assert.ok(Math.abs(length_of(await embed({ input: long, truncate_prompt_tokens: -1 })) - 1) < 1e-5);
  // What is left of a cut text is framed as any text is.
  const { tokens: first } = await ask(server, "/tokenize", { model: "bert", prompt: long });
  assert.deepEqual(await embed({ input: long, truncate_prompt_tokens: 10 }), await embed({ input: [[...first.slice(0, 9), first.at(-1)]] }));
  for (const [body, param] of [[{ dimensions: 33 }, "dimensions"], [{ dimensions: 0 }, "dimensions"], [{ prompt_name: "nothing" }, "prompt_name"],
    [{ normalize: 1 }, "normalize"], [{ truncate_prompt_tokens: 0 }, "truncate_prompt_tokens"], [{ input: [[99999]] }, "input[0][0]"], [{ input: [] }, "input"]]) {
    const { error } = await ask(server, "/v1/embeddings", { model: "bert", input: "a", ...body }, 400);
    assert.equal(error.param, param, error.message);
  }
  const { error } = await ask(server, "/v1/completions", { model: "bert", prompt: "the" }, 400);
  assert.equal(error.param, "model");
});

test("files of llama.cpp's converter give what their folders give", async (t) => {
  const files = temporaryFolder(t);
  const write = (name, as, pooling) => {
    const file = path.join(files, `${as}.gguf`);
    write_bert_file(folder(name), file, pooling);
    return file;
  };
  const server = await serve(t, [write("bert", "mean", 1), write("bert", "first", 2), write("bert", "none", 0), write("bert-rank", "rank", 4),
    folder("bert"), folder("bert-cls"), folder("bert-rank")]);
  const embed = async (model, input, more = {}) => (await ask(server, "/v1/embeddings", { model, input, ...more })).data[0].embedding;
  for (const { text, vector } of references_of("bert")) {
    assert_close(await embed("mean", text), vector, 1e-4 * length_of(vector), text.slice(0, 20));
    assert.deepEqual(await embed("mean", text), await embed("bert", text));
    const { data } = await ask(server, "/pooling", { model: "bert", input: text, task: "token_embed" });
    assert.deepEqual(await embed("none", text), data[0].data);
    assert.deepEqual(await embed("first", text), data[0].data[0]);
  }
  for (const { text, pair, logits } of references_of("bert-rank").filter(({ pair }) => pair !== null)) {
    const body = { query: text, documents: [pair, "she sells sea shells"], raw_scores: true };
    const { results } = await ask(server, "/v1/rerank", { ...body, model: "rank" });
    assert.deepEqual(results, (await ask(server, "/v1/rerank", { ...body, model: "bert-rank" })).results);
    assert.ok(Math.abs(results.find(({ index }) => index === 0).relevance_score - logits[0]) < 2e-3);
  }
  const { data } = await ask(server, "/v1/classify", { model: "rank", input: "the river" });
  assert.equal(data[0].label, "label0");
  const long = "she sells sea shells ".repeat(120);
  const cut = { query: "what is the capital", documents: [long], truncate_prompt_tokens: -1 };
  const { usage } = await ask(server, "/v1/rerank", { ...cut, model: "rank" });
  assert.equal(usage.prompt_tokens, 320);
  const { error } = await ask(server, "/v1/rerank", { ...cut, model: "rank", truncate_prompt_tokens: 6 }, 400);
  assert.equal(error.param, "truncate_prompt_tokens");
});

test("documents are ranked by the scores of transformers", async (t) => {
  const server = await serve(t, [...rankers.map(folder), folder("bert")]);
  for (const model of rankers) {
    const pairs = references_of(model).filter(({ pair }) => pair !== null);
    for (const { text, pair, logits } of pairs) {
      const body = { model, query: text, documents: [pair, { text: "a" }], return_documents: true };
      const { results } = await ask(server, "/v1/rerank", body);
      assert.equal(results.length, 2);
      assert.ok(results[0].relevance_score >= results[1].relevance_score);
      const own = results.find(({ index }) => index === 0);
      assert.ok(Math.abs(own.relevance_score - sigmoid(logits[0])) < 1e-4);
      assert.deepEqual(own.document, { text: pair });
      const raw = await ask(server, "/rerank", { ...body, raw_scores: true, top_n: 1 });
      assert.equal(raw.results.length, 1);
      const scored = await ask(server, "/v1/score", { model, text_1: text, text_2: [pair, "a"] });
      assert.deepEqual(scored.data[0].score, own.relevance_score);
      const logit = await ask(server, "/score", { model, text_1: [text], text_2: [pair], raw_scores: true });
      assert.ok(Math.abs(logit.data[0].score - logits[0]) < 2e-3);
    }
  }
  for (const [body, param] of [[{ documents: ["a"] }, "query"], [{ query: "a" }, "documents"], [{ query: "a", documents: [] }, "documents"],
    [{ query: "a", documents: ["b", 1] }, "documents[1]"], [{ query: "a", documents: [{}] }, "documents[0].text"],
    [{ query: "a", documents: ["b"], top_n: 0 }, "top_n"], [{ query: "a", documents: ["b"], model: "bert" }, "model"]]) {
    const { error } = await ask(server, "/v1/rerank", { model: "bert-rank", ...body }, 400);
    assert.equal(error.param, param, error.message);
  }
  const uneven = await ask(server, "/v1/score", { model: "bert-rank", text_1: ["a", "b"], text_2: ["c"] }, 400);
  assert.equal(uneven.error.param, "text_1");
  const repeated = { model: "bert-rank", query: "x".repeat(40_000), documents: Array(1024).fill("a") };  // 40 MB of pairs
  assert.equal((await ask(server, "/v1/rerank", repeated, 400)).error.param, "query");
});

test("classes and rewards are those of transformers", async (t) => {
  const server = await serve(t, [...classifiers.map(folder), folder("llama-reward"), "--dtype", "f32", "--kv-dtype", "f32", "--kv-memory", "256M"]);
  for (const model of classifiers) {
    const texts = references_of(model).filter(({ pair }) => pair === null);
    const { data } = await ask(server, "/v1/classifications", { model, input: texts.map(({ text }) => text), logits: true });
    texts.forEach(({ logits }, i) => {
      const probs = model === "distilbert-labels" ? logits.map(sigmoid) : softmax(logits);
      assert_close(data[i].probs, probs, 1e-4, `${model} ${i}`);
      assert_close(data[i].logits, logits, 2e-3, `${model} ${i}`);
      assert.equal(data[i].label, `label${logits.indexOf(Math.max(...logits))}`);
      assert.equal(data[i].num_classes, logits.length);
    });
    assert.deepEqual((await ask(server, "/classify", { model, input: texts[0].text })).data[0].probs, data[0].probs);
  }
  const rewarded = references_of("llama-reward").filter(({ pair }) => pair === null);
  const { data } = await ask(server, "/v1/rewards/score", { model: "llama-reward", input: rewarded.map(({ text }) => text) });
  rewarded.forEach(({ logits }, i) => assert.ok(Math.abs(data[i].score - logits[0]) < 2e-3));
  const chat = await ask(server, "/v1/rewards/score", { model: "llama-reward", messages: [{ role: "user", content: "the river" }, { role: "assistant", content: "runs" }] });
  assert.equal(typeof chat.data[0].score, "number");
  const talks = ["runs", "sleeps"].map((content) => [{ role: "user", content: "the river" }, { role: "assistant", content }]);
  const several = await ask(server, "/v1/rewards/score", { model: "llama-reward", messages: talks });
  assert.deepEqual(several.data.map(({ index }) => index), [0, 1]);
  assert.equal(several.data[0].score, chat.data[0].score);
  assert.notEqual(several.data[1].score, several.data[0].score);
  const wrong = await ask(server, "/v1/rewards/score", { model: "llama-reward", messages: [talks[0], [{ role: "user" }]] }, 400);
  assert.ok(wrong.error.param.startsWith("messages[1][0]"), wrong.error.param);
  assert.deepEqual((await ask(server, "/pooling", { model: "llama-reward", input: rewarded[0].text })).data[0].data, [data[0].score]);
  assert.equal((await ask(server, "/v1/completions", { model: "llama-reward", prompt: "a" }, 400)).error.param, "model");
});

test("sizes that a model's configuration lists bind", async (t) => {
  const server = await serve(t, [folder("jina-v3-tasks")]);
  const { data } = await ask(server, "/v1/embeddings", { input: "the river", dimensions: 16 });
  assert.equal(data[0].embedding.length, 16);
  assert.ok(Math.abs(length_of(data[0].embedding) - 1) < 1e-5);
  const { error } = await ask(server, "/v1/embeddings", { input: "the river", dimensions: 12 }, 400);
  assert.equal(error.param, "dimensions");
  assert.match(error.message, /8, 16, 32/);
});

// Of the texts of the base's references, in their order, without pairs.
const adapted_references = (base, name) => {
  const { texts } = JSON.parse(readFileSync(path.join(adapter_folder(name), "reference.json"), "utf8"));
  return references_of(base).map(({ text, pair }, i) => ({ text, pair, ...texts[i] }));
};
const unit = (vector) => vector.map((value) => value / length_of(vector));

test("adapters of encoders give what PEFT gives, chosen by request, in one batch with others and with none", async (t) => {
  const server = await serve(t, [folder("bert"), folder("bert-labels"), folder("xlm-roberta-rank"), "--lora", `bert:tuned=${adapter_folder("lora")}`,
    "--lora", `bert:kinds=${adapter_folder("new-head")}`, "--lora", `bert-labels:longer=${adapter_folder("dora-labels")}`,
    "--lora", `xlm-roberta-rank:better=${adapter_folder("rank")}`]);
  const embed = async (body) => ask(server, "/v1/embeddings", body);
  const [first] = adapted_references("bert", "lora");
  const plain = (await embed({ model: "bert", input: first.text })).data[0].embedding;
  for (const { text, vector } of adapted_references("bert", "lora").filter(({ pair }) => pair === null)) {
    const named = await embed({ model: "bert:tuned", input: text });
    assert.equal(named.model, "bert:tuned");
    assert_close(named.data[0].embedding, unit(vector), 2e-4, text.slice(0, 20));
    assert.deepEqual((await embed({ model: "tuned", input: text })).data, named.data);
    assert.deepEqual((await embed({ model: "bert", adapter: "tuned", input: text })).data, named.data);
  }
  // Together in the queue, and so in one pass.
  const choices = ["bert", "tuned", "kinds", { name: "tuned", scale: 0.5 }];
  const body = (i) => {
    const choice = choices[i % choices.length];
    return { ...(typeof choice === "string" ? { model: choice } : { model: "bert", adapter: choice }), input: `${first.text} ${i}` };
  };
  const together = await Promise.all(Array.from({ length: 64 }, (_, i) => embed(body(i))));
  for (let i = 0; i < 64; i += 5) assert.deepEqual(together[i].data, (await embed(body(i))).data, `${i}`);
  assert.notDeepEqual(together[1].data[0].embedding, together[2].data[0].embedding);
  assert.deepEqual((await embed({ model: "bert", input: first.text })).data[0].embedding, plain);

  // A head that the base has not, one in place of the base's, and a ranker's.
  assert.equal((await ask(server, "/v1/classify", { model: "bert", input: "the river" }, 400)).error.param, "model");
  for (const [model, base, name] of [["kinds", "bert", "new-head"], ["bert-labels:longer", "bert-labels", "dora-labels"]])
    for (const { text, logits } of adapted_references(base, name).filter(({ pair }) => pair === null)) {
      const { data } = await ask(server, "/v1/classify", { model, input: text, logits: true });
      assert_close(data[0].logits, logits, 2e-3, `${model} ${text.slice(0, 20)}`);
      assert_close(data[0].probs, softmax(logits), 2e-4, `${model} ${text.slice(0, 20)}`);
    }
  for (const { text, pair, logits } of adapted_references("xlm-roberta-rank", "rank").filter(({ pair: two }) => two !== null)) {
    const { results } = await ask(server, "/v1/rerank", { model: "better", query: text, documents: [pair], raw_scores: true });
    assert.ok(Math.abs(results[0].relevance_score - logits[0]) < 2e-3);
  }
  const wrong = await ask(server, "/v1/embeddings", { model: "bert", adapter: [{ name: "kinds", scale: 0.5 }], input: "a" }, 400);
  assert.match(wrong.error.message, /alone/);
  await ask(server, "/v1/embeddings", { model: "bert:nothing", input: "a" }, 404);
});

test("adapters of encoders from llama.cpp's files give what those of their folders give", async (t) => {
  const files = temporaryFolder(t);
  const write = (name, pooling) => {
    const file = path.join(files, `${name}.gguf`);
    write_bert_file(folder(name), file, pooling);
    return file;
  };
  const server = await serve(t, [write("bert", 1), write("bert-rank", 4), folder("bert-labels"), "--lora", `bert:tuned=${adapter_folder("lora")}`,
    "--lora", `bert-rank:other=${adapter_folder("lora")}`, "--adapter-dir", adapter_folder("")]);
  for (const { text, vector } of adapted_references("bert", "lora").filter(({ pair }) => pair === null)) {
    const { data } = await ask(server, "/v1/embeddings", { model: "tuned", input: text });
    assert_close(data[0].embedding, unit(vector), 2e-4, text.slice(0, 20));
  }
  const body = { query: "the river", documents: ["the sea"], raw_scores: true };
  assert.notDeepEqual((await ask(server, "/v1/rerank", { ...body, model: "other" })).results, (await ask(server, "/v1/rerank", { ...body, model: "bert-rank" })).results);
  const { error } = await ask(server, "/v1/adapters", { model: "bert", name: "kinds", path: "new-head" }, 400);
  assert.match(error.message, /classifier.*the base has no matrix cls\.output/);
});

test("adapters of encoders are loaded, updated and unloaded while texts are read", async (t) => {
  const files = temporaryFolder(t);
  for (const name of ["lora", "dora-labels", "rslora"]) cpSync(adapter_folder(name), path.join(files, name), { recursive: true });
  const server = await serve(t, [folder("bert"), folder("bert-labels"), "--adapter-dir", files]);
  const embed = async (model) => (await ask(server, "/v1/embeddings", { model, input: "the river runs" })).data[0].embedding;
  const classify = async () => (await ask(server, "/v1/classify", { model: "kinds", input: "the river runs", logits: true })).data[0].logits;
  const update = async (name, changed, more = {}, status = 200) => {
    const response = await fetch(`${server.url}/update_adapter_weights`,
      { method: "POST", body: safetensors(changed, { adapter: name, partial: "true", ...more }), headers: { "Content-Type": "application/octet-stream" } });
    const answer = await response.json();
    assert.equal(response.status, status, JSON.stringify(answer));
    return answer;
  };
  assert.equal((await ask(server, "/v1/adapters", { model: "bert", name: "tuned", path: "lora" })).rank, 4);
  await ask(server, "/v1/adapters", { model: "bert-labels", name: "kinds", path: "dora-labels" });
  const { data } = await (await fetch(`${server.url}/v1/adapters`)).json();
  assert.deepEqual(data.map(({ id }) => id).sort(), ["kinds", "tuned"]);

  // A class head and magnitudes, of which the answer's numbers follow.
  const logits = await classify();
  const tensors = tensors_in(path.join(files, "dora-labels/adapter_model.safetensors"));
  const head = "base_model.model.classifier.bias";
  const moved = { ...tensors[head], values: tensors[head].values.map((value) => value + 1) };
  const newer = await update("kinds", { [head]: moved });
  assert_close(await classify(), logits.map((value) => value + 1), 1e-4, "the head");
  assert.notEqual(newer.revision, undefined);
  const [magnitude] = Object.keys(tensors).filter((name) => name.endsWith("layer.0.intermediate.dense.lora_magnitude_vector"));
  await update("kinds", { [head]: tensors[head], [magnitude]: { ...tensors[magnitude], values: tensors[magnitude].values.map((value) => 2 * value) } });
  assert.notDeepEqual(await classify(), logits);
  await update("kinds", tensors, { mode: "abort" });
  assert.deepEqual(await classify(), logits, "the same bits once the same tensors are back");

  // What cannot be leaves all as it is.
  const before = await embed("tuned");
  const query = "base_model.model.encoder.layer.1.attention.self.query.lora_B.weight";
  assert.match((await update("tuned", { [query]: { shape: [16, 4], values: Array(64).fill(0) } }, {}, 400)).error.message, new RegExp(`${query}.*\\[16, 4\\]`));
  assert.match((await update("tuned", { [query]: { shape: [32, 4], values: Array(128).fill(0) } }, { mode: "keep" }, 400)).error.message, /'keep'/);
  assert.match((await update("tuned", { strange: { shape: [1], values: [0] } }, {}, 400)).error.message, /strange/);
  assert.match((await ask(server, "/v1/adapters", { model: "bert", name: "other", path: "rslora/adapter_model.safetensors" }, 400)).error.message, /adapter_model.safetensors.*expected 'GGUF'/);
  assert.equal((await ask(server, "/v1/training/jobs", { model: "bert", name: "x", pairs: [{ chosen: "a", rejected: "b" }] }, 400)).error.param, "model");
  assert.deepEqual(await embed("tuned"), before);

  // Updates beside many texts: each answer is one revision's.
  const older = tensors_in(path.join(files, "lora/adapter_model.safetensors"));
  await update("tuned", { [query]: { ...older[query], values: older[query].values.map((value) => -value) } });
  const after = await embed("tuned");
  const known = [JSON.stringify(before), JSON.stringify(after)];
  let going = true;
  const clients = Array.from({ length: 8 }, async () => {
    for (let turn = 0; going || turn < 4; ++turn) assert.ok(known.includes(JSON.stringify(await embed("tuned"))));
  });
  for (let turn = 0; turn < 12; ++turn) await update("tuned", { [query]: turn % 2 === 0 ? older[query] : { ...older[query], values: older[query].values.map((value) => -value) } });
  going = false;
  await Promise.all(clients);
  assert.equal((await fetch(`${server.url}/v1/adapters/tuned`, { method: "DELETE" })).status, 200);
  await ask(server, "/v1/embeddings", { model: "tuned", input: "a" }, 404);
  assert.ok((await embed("bert")).length > 0);
});

test("a task of Jina v3 has words and weights of its own, and others share its batch", async (t) => {
  const server = await serve(t, [folder("jina-v3-tasks")]);
  const references = references_of("jina-v3-tasks");
  const [words] = ["what is "];  // of retrieval.query
  for (const { text, task, vector } of references) {
    if (task === "retrieval.passage" || (task === "retrieval.query" && !text.startsWith(words))) continue;
    const input = task === "retrieval.query" ? text.slice(words.length) : text;
    const { data } = await ask(server, "/v1/embeddings", { input, task });
    assert_close(data[0].embedding, vector, 1e-4, `${task}: ${text.slice(0, 20)}`);
  }
  const some = references.filter(({ task }) => !task?.startsWith("retrieval"));
  const together = await Promise.all(some.map(({ text, task }) => ask(server, "/v1/embeddings", { input: text, task })));
  together.forEach(({ data }, i) => assert_close(data[0].embedding, some[i].vector, 1e-4, `${i}`));
  const plain = references.find(({ task }) => task === undefined);
  const named = await ask(server, "/v1/embeddings", { input: plain.text, prompt_name: "separation" });
  assert_close(named.data[0].embedding, plain.vector, 1e-4, "a name of words alone changes no weights");
  assert.equal((await ask(server, "/v1/embeddings", { input: "a", task: "nothing" }, 400)).error.param, "task");
});

test("decoders in float32 give what transformers gives: last tokens and a judgment", async (t) => {
  const server = await serve(t, [...["qwen3", "mistral", "qwen3-reranker"].map(folder), "--dtype", "f32", "--kv-dtype", "f32", "--kv-memory", "256M"]);
  for (const model of ["qwen3", "mistral"]) {
    for (const { text, vector } of references_of(model)) {
      const { data } = await ask(server, "/v1/embeddings", { model, input: text });
      assert_close(data[0].embedding, vector, 1e-4 * length_of(vector), `${model}: ${text.slice(0, 20)}`);
    }
  }
  for (const { text, pair, logits } of references_of("qwen3-reranker")) {
    const body = { model: "qwen3-reranker", query: text, documents: [pair] };
    const { results } = await ask(server, "/v1/rerank", body);
    assert.ok(Math.abs(results[0].relevance_score - sigmoid(logits[0])) < 1e-4, JSON.stringify(results));
    const raw = await ask(server, "/v1/rerank", { ...body, raw_scores: true });
    assert.ok(Math.abs(raw.results[0].relevance_score - logits[0]) < 2e-3);
  }
});

test("each token's vector is given where the server or the request says so", async (t) => {
  const server = await serve(t, [folder("bert"), demo, "--pooling", "none", "--kv-memory", "64M"]);
  const each = async (model, input, more = {}) => (await ask(server, "/v1/embeddings", { model, input, ...more })).data[0].embedding;
  const { tokens } = await ask(server, "/tokenize", { model: "bert", prompt: "the river" });
  const vectors = await each("bert", "the river");
  assert.equal(vectors.length, tokens.length);
  for (const vector of vectors) assert.ok(Math.abs(length_of(vector) - 1) < 1e-5);
  const last = await each("demo-q8_0", [7, 8, 9]);
  assert.equal(last.length, 3);
  assert.deepEqual((await each("demo-q8_0", [7, 8]))[1], last[1], "a decoder's tokens see what is before them alone");
  const other = await serve(t, [folder("bert"), "--pooling", "mean"]);
  const { data } = await ask(other, "/pooling", { input: "the river", task: "token_embed" });
  assert.deepEqual(data[0].data, vectors);
  const ids = [...tokens.slice(0, 4), 9, 10, 11];
  const cut = await ask(other, "/v1/embeddings", { input: [ids], truncate_prompt_tokens: 4 });
  assert.deepEqual(cut.data, (await ask(other, "/v1/embeddings", { input: [ids.slice(0, 4)] })).data, "ids are all the client's: none of them closes a text");
});

test("braid info tells of what reads texts and of networks", async (t) => {
  const told = async (...args) => {
    const { code, stdout, stderr } = await braid(t, ["info", ...args]);
    assert.equal(code, 0, stderr);
    return stdout;
  };
  const tasks = await told(folder("jina-v3-tasks"));
  assert.match(tasks, /family +xlm-roberta\n/);
  assert.match(tasks, /vectors +32 numbers, of the mean of all tokens, of length 1\n/);
  assert.match(tasks, /tasks +retrieval\.query, retrieval\.passage, separation/);
  assert.match(await told(folder("bert-labels")), /classes +label0, label1, label2\n/);
  const network = await told(path.join(sourceFolder, "test/model/reference/networks/gru"));
  assert.match(network, /h0 +float32 \[2, batch, 12\], optional\n/);
  assert.match(network, /hn +float32 \[2, batch, 12\]\n/);
  const sizes = await Promise.all([[], ["--dtype", "int8"]].map((more) => told(folder("bert"), ...more)));
  assert.notEqual(sizes[0], sizes[1], "8 bits take less memory");
});

test("Cohere's SDK gets ranks from both of its paths", async (t) => {
  const server = await serve(t, [folder("bert-rank")]);
  const { text: query, pair, logits } = references_of("bert-rank").find((reference) => reference.pair !== null);
  const options = { token: "none", environment: server.url, maxRetries: 0 };
  for (const client of [new CohereClient(options), new CohereClientV2(options)]) {
    const { results, id } = await client.rerank({ model: "bert-rank", query, documents: [pair, "a"], topN: 2 });
    assert.equal(results.length, 2);
    assert.ok(Math.abs(results.find(({ index }) => index === 0).relevanceScore - sigmoid(logits[0])) < 1e-4);
    assert.match(id, /^rerank-/);
  }
});

test("SDKs get vectors: openai, LangChain, ai", async (t) => {
  const server = await serve(t, [folder("bert")]);
  const [first, second] = references_of("bert");
  const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: "none", maxRetries: 0 });
  const { data } = await client.embeddings.create({ model: "bert", input: [first.text, second.text] });  // by base64
  assert_close(data[0].embedding, first.vector, 1e-4, "openai");
  const chain = new OpenAIEmbeddings({ model: "bert", apiKey: "none", configuration: { baseURL: `${server.url}/v1` } });
  const [, of_second] = await chain.embedDocuments([first.text, second.text]);
  assert_close(of_second, second.vector, 1e-4, "LangChain");
  const provider = createOpenAICompatible({ name: "braid", baseURL: `${server.url}/v1` });
  const { embeddings } = await embedMany({ model: provider.textEmbeddingModel("bert"), values: [first.text, second.text] });
  assert_close(embeddings[1], second.vector, 1e-4, "ai");
});
