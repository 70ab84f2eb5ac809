// Guessed tokens change nothing of an answer but its time: streams, stop strings, tools, log-probabilities, choices and seeds over HTTP,
// with a server that guesses and one that does not; and what is told of them.
import assert from "node:assert/strict";
import { symlinkSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import path from "node:path";
import { braidBinary, Process, serve, sourceFolder, temporaryFolder } from "./support/processes.mjs";
import { safetensors } from "./support/adapters.mjs";
import { collect, eventually, metric, metrics, post } from "./support/client.mjs";
import { recurrentModel } from "./support/recurrent_model.mjs";

const story = "Once upon a time, a brave fox named Luna lived in the castle. She loved her kite more than anything. ";
const text = (more = {}) => ({ prompt: story.repeat(3) + "Once upon a time, a", max_tokens: 60, temperature: 0, ignore_eos: true, ...more });
const schema = { type: "object", properties: { animal: { enum: ["fox", "owl"] }, age: { type: "integer", maximum: 99 } }, required: ["animal", "age"], additionalProperties: false };
const chat = (more = {}) => ({ messages: [{ role: "user", content: "Tell me a story about a brave fox." }], max_tokens: 60, temperature: 0.8, seed: 5, ...more });

const wishes = [
  ["/v1/completions", text()],
  ["/v1/completions", text({ logprobs: 3, return_token_ids: true })],
  ["/v1/completions", text({ temperature: 0.9, seed: 3, n: 3, logprobs: 1 })],
  ["/v1/completions", text({ stop: ["castle"], include_stop_str_in_output: true })],
  ["/v1/completions", text({ stop: ["She "] })],
  ["/v1/completions", text({ min_tokens: 20, ignore_eos: false, presence_penalty: 0.5, repetition_penalty: 1.1 })],
  ["/v1/completions", text({ echo: true, logprobs: 2, max_tokens: 20 })],
  ["/v1/chat/completions", chat({ logprobs: true, top_logprobs: 2 })],
  ["/v1/chat/completions", chat({ response_format: { type: "json_schema", json_schema: { name: "one", strict: true, schema } } })],
  ["/v1/chat/completions", chat({ tools: [{ type: "function", function: { name: "tell", parameters: schema } }], tool_choice: "required" })],
];

const answer_of = ({ choices }) => choices.map(({ message, ...rest }) => ({
  ...rest, message: message && { ...message, tool_calls: message.tool_calls?.map((call) => call.function) } }));

test("answers are the same with guesses and without, alone and together", async (t) => {
  const plain = await serve(t, ["--no-warmup", "--speculate", "off", "--kv-memory", "64M"]);
  const guessing = await serve(t, ["--no-warmup", "--speculate-always", "--kv-memory", "64M"]);
  const ask = async (server, [path, body]) => {
    const response = await post(server.url + path, body);
    const answer = await response.json();
    assert.equal(response.status, 200, JSON.stringify(answer));
    return answer;
  };
  const expected = [];
  for (const wish of wishes) expected.push(answer_of(await ask(plain, wish)));
  for (const [i, wish] of wishes.entries()) assert.deepEqual(answer_of(await ask(guessing, wish)), expected[i], JSON.stringify(wish));
  const together = await Promise.all([...wishes, ...wishes].map((wish) => ask(guessing, wish)));
  for (const [i, answer] of together.entries()) assert.deepEqual(answer_of(answer), expected[i % wishes.length], `together, ${i}`);

  const predicted = text({ temperature: 0.9, seed: 4, max_tokens: 40 });
  const said = (await ask(plain, ["/v1/completions", predicted])).choices[0].text;
  const prediction = { type: "content", content: [{ type: "text", text: said }] };
  const { choices, usage } = await ask(guessing, ["/v1/completions", { ...predicted, prediction }]);
  assert.equal(choices[0].text, said);
  assert.ok(usage.completion_tokens_details.accepted_prediction_tokens > 0);
  assert.equal(typeof usage.completion_tokens_details.rejected_prediction_tokens, "number");
  assert.ok(usage.completion_tokens_details.accepted_prediction_tokens < usage.completion_tokens);
  const streamed = await collect(await post(`${guessing.url}/v1/completions`, { ...predicted, prediction, stream: true }));
  assert.equal(streamed.text, said);

  const counts = await metrics(guessing.url);
  for (const source of ["prediction", "grammar", "ngram"])
    assert.ok(counts.get(`braid_draft_tokens_accepted_total{source="${source}",position="1"}`) > 0, source);
  const none = await ask(guessing, ["/v1/completions", text({ speculative: { method: "off" } })]);
  assert.equal(none.usage.completion_tokens_details, undefined);
  const off = await metrics(plain.url);
  for (const [name, value] of off) if (name.startsWith("braid_draft_tokens")) assert.equal(value, 0, name);
});

// Whose states cannot go back behind a wrong guess: what is predicted is right, wrong from some place on, or somebody else's.
test("models with recurrent layers guess, and say the same", async (t) => {
  for (const name of ["lfm2", "qwen3.5", "granite4"]) {
    const model = recurrentModel(t, name);
    const plain = await serve(t, [model, "--no-warmup", "--speculate", "off", "--kv-memory", "16M"]);
    const guessing = await serve(t, [model, "--no-warmup", "--speculate-always", "--kv-memory", "16M"]);
    const ask = async (server, body) => (await post(`${server.url}/v1/completions`, body)).json();
    const wish = (seed) => ({ prompt: "Once upon a time", max_tokens: 40, temperature: 1.5, seed, ignore_eos: true, logprobs: 2, return_token_ids: true });
    const said = [];
    for (let seed = 0; seed < 4; ++seed) said.push((await ask(plain, wish(seed))).choices);
    let accepted = 0;
    let rejected = 0;
    const guess = async (seed, content) => {
      const { choices, usage } = await ask(guessing, { ...wish(seed), prediction: { type: "content", content } });
      assert.deepEqual(choices, said[seed], `${name}, seed ${seed}`);
      accepted += usage.completion_tokens_details?.accepted_prediction_tokens ?? 0;
      rejected += usage.completion_tokens_details?.rejected_prediction_tokens ?? 0;
    };
    for (let seed = 0; seed < 4; ++seed) {
      const text = said[seed][0].text;
      for (const content of [text, text.slice(0, 15) + "zzzz" + text.slice(19), said[(seed + 1) % 4][0].text]) await guess(seed, content);
    }
    assert.ok(accepted > 0 && rejected > 0, `${name}: ${accepted} right, ${rejected} wrong`);
  }
});

test("a model's own head guesses, and answers stay the same", async (t) => {
  for (const name of ["qwen3.5", "qwen3-next"]) {
    const model = recurrentModel(t, name, { head: true });
    const plain = await serve(t, [model, "--no-warmup", "--speculate", "off", "--kv-memory", "16M"]);
    const guessing = await serve(t, [model, "--no-warmup", "--speculate", "mtp", "--speculate-always", "--kv-memory", "16M"]);
    const ask = async (server, body) => (await post(`${server.url}/v1/completions`, body)).json();
    const wish = { prompt: "Once upon a time", max_tokens: 60, temperature: 1, ignore_eos: true, logprobs: 2, return_token_ids: true };
    let guessed = 0;
    for (let seed = 0; seed < 3; ++seed) {
      const { choices, usage } = await ask(guessing, { ...wish, seed });
      assert.deepEqual(choices, (await ask(plain, { ...wish, seed })).choices, `${name}, seed ${seed}`);
      const { accepted_prediction_tokens: accepted, rejected_prediction_tokens: rejected } = usage.completion_tokens_details ?? {};
      guessed += (accepted ?? 0) + (rejected ?? 0);
    }
    assert.ok(guessed > 0, name);
    assert.ok((await metrics(guessing.url)).get(`braid_draft_tokens_total{source="mtp",position="1"}`) > 0);
  }
});

test("a model without a head for tokens further on guesses from what there is, and says so", async (t) => {
  const server = await serve(t, ["--no-warmup", "--kv-memory", "16M", "--speculate", "mtp"]);
  assert.match(server.errors, /--speculate mtp: .*: the model has no heads for tokens further on; it guesses from what there is/);
  assert.equal((await post(`${server.url}/v1/completions`, text({ max_tokens: 3 }))).status, 200);
});

test("what a server cannot guess from is refused with a sentence", async (t) => {
  const server = await serve(t, ["--no-warmup", "--kv-memory", "16M"]);
  const refused = async (more) => {
    const response = await post(`${server.url}/v1/completions`, { prompt: "a", max_tokens: 1, ...more });
    assert.equal(response.status, 400);
    return (await response.json()).error;
  };
  assert.match((await refused({ speculative: { method: "mtp" } })).message, /has no heads/);
  assert.match((await refused({ speculative: { method: "draft" } })).message, /no draft model/);
  assert.match((await refused({ speculative: { method: "magic" } })).message, /must be one of/);
  assert.match((await refused({ speculative: { max_tokens: 0 } })).message, /max_tokens/);
  assert.equal((await refused({ speculative: { tokens: 3 } })).param, "speculative.tokens");
  assert.equal((await refused({ prediction: { type: "content", content: 3 } })).param, "prediction.content");
});

test("a small model guesses for the embedded one", async (t) => {
  const draft = path.join(sourceFolder, "models/demo-draft-q8_0.gguf");
  const plain = await serve(t, ["--no-warmup", "--speculate", "off", "--kv-memory", "64M"]);
  const guessing = await serve(t, ["--no-warmup", "--draft", draft, "--speculate-always", "--kv-memory", "64M"]);
  const ask = async (server, [path, body]) => (await post(server.url + path, body)).json();
  const drafted = { speculative: { method: "draft", max_tokens: 4 } };
  for (const [path, body] of wishes)
    assert.deepEqual(answer_of(await ask(guessing, [path, { ...body, ...drafted }])), answer_of(await ask(plain, [path, body])), JSON.stringify(body));
  const answer = await ask(guessing, ["/v1/chat/completions", chat({ ...drafted, timings: true })]);
  const { accepted_prediction_tokens: accepted, rejected_prediction_tokens: rejected } = answer.usage.completion_tokens_details;
  assert.ok(accepted > 0);
  assert.equal(answer.timings.draft_n, accepted + rejected);
  assert.equal(answer.timings.draft_n_accepted, accepted);
  const counts = await metrics(guessing.url);
  assert.ok(counts.get(`braid_draft_tokens_accepted_total{source="draft",position="1"}`) > 0);
});

// What a draft model has read of a text goes with the blocks of the model that it guesses for.
test("a draft model reads a text once: not behind a hit, for each choice, or after a restart from disk", async (t) => {
  const draft = path.join(sourceFolder, "models/demo-draft-q8_0.gguf");
  const folder = temporaryFolder(t);
  const args = ["--no-warmup", "--draft", draft, "--speculate-always", "--kv-memory", "64M", "--kv-disk", folder, "--kv-disk-write", "through", "--kv-disk-read", "always"];
  const plain = await serve(t, ["--no-warmup", "--speculate", "off", "--kv-memory", "64M"]);
  const prompt = story.repeat(12);
  const wish = (ending, more = {}) => ({ prompt: prompt + ending, max_tokens: 40, temperature: 0, ignore_eos: true, speculative: { method: "draft" }, ...more });
  const ask = async (server, body) => {
    const before = await metrics(server.url);
    const answer = await (await post(`${server.url}/v1/completions`, body)).json();
    const after = await metrics(server.url);
    const grown = (name) => after.get(name) - before.get(name);
    const expected = await (await post(`${plain.url}/v1/completions`, { ...body, speculative: undefined })).json();
    assert.deepEqual(answer.choices, expected.choices);
    return { read: grown("braid_draft_read_tokens_total"), guessed: grown(`braid_draft_tokens_total{source="draft",position="1"}`), known: answer.usage.prompt_tokens };
  };
  const server = await serve(t, args);
  const cold = await ask(server, wish("One day, the fox"));
  assert.ok(cold.read > cold.known, JSON.stringify(cold));
  const few = cold.known / 2;
  const hit = await ask(server, wish("In the morning, an owl"));
  assert.ok(hit.read < few, JSON.stringify(hit));
  const choices = await ask(server, wish("At night, a bear", { n: 3, temperature: 0.9, seed: 8 }));
  assert.ok(choices.read < 2 * few, JSON.stringify(choices));
  await eventually("blocks are written", async () => (await metric(server.url, "braid_disk_cache_writes_total")) * 16 > cold.known - 16);
  server.child.kill("SIGTERM");
  await server.exited;
  const again = await serve(t, args);
  const restored = await ask(again, wish("One day, the fox"));
  assert.ok(await metric(again.url, "braid_prefix_cache_disk_hit_tokens_total") > few, "nothing was restored");
  assert.ok(restored.read < few, JSON.stringify(restored));
  for (const { guessed } of [cold, hit, choices, restored]) assert.ok(guessed > 0, "nothing was guessed");
});

// A head of the EAGLE-3 kind with random weights, for a model with states of 512 values and 8 layers.
function eagleHead(folder, { read = [1, 4, 6] } = {}) {
  const width = 64;
  let state = 11;
  const drawn = (...shape) => ({ shape, values: Array.from({ length: shape.reduce((a, b) => a * b) }, () => {
    state = (state * 48271) % 2147483647;
    return state / 2147483647 - 0.5;
  }) });
  const tensors = { "embed_tokens.weight": drawn(8192, width), "fc.weight": drawn(width, 3 * 512), "lm_head.weight": drawn(600, width), "norm.weight": drawn(width) };
  for (const [name, shape] of Object.entries({ "self_attn.q_proj": [64, 2 * width], "self_attn.k_proj": [32, 2 * width], "self_attn.v_proj": [32, 2 * width],
    "self_attn.o_proj": [width, 64], "mlp.gate_proj": [96, width], "mlp.up_proj": [96, width], "mlp.down_proj": [width, 96],
    input_layernorm: [width], hidden_norm: [width], post_attention_layernorm: [width] })) tensors[`midlayer.${name}.weight`] = drawn(...shape);
  writeFileSync(path.join(folder, "model.safetensors"), safetensors(tensors));
  writeFileSync(path.join(folder, "config.json"), JSON.stringify({
    architectures: ["LlamaForCausalLMEagle3"], model_type: "llama", hidden_size: width, num_hidden_layers: 1, num_attention_heads: 4, num_key_value_heads: 2,
    head_dim: 16, intermediate_size: 96, hidden_act: "silu", max_position_embeddings: 1024, rms_norm_eps: 1e-5, rope_theta: 10000, vocab_size: 8192,
    draft_vocab_size: 600, eagle_config: { eagle_aux_hidden_state_layer_ids: read } }));
  return folder;
}

test("an EAGLE-3 head guesses, and answers stay the same", async (t) => {
  const plain = await serve(t, ["--no-warmup", "--speculate", "off", "--kv-memory", "64M"]);
  const guessing = await serve(t, ["--no-warmup", "--draft", eagleHead(temporaryFolder(t)), "--speculate", "draft", "--speculate-always", "--kv-memory", "64M"]);
  const ask = async (server, [path, body]) => (await post(server.url + path, body)).json();
  for (const wish of wishes) assert.deepEqual(answer_of(await ask(guessing, wish)), answer_of(await ask(plain, wish)), JSON.stringify(wish));
  assert.ok((await metrics(guessing.url)).get(`braid_draft_tokens_total{source="draft",position="1"}`) > 0);
  const server = new Process(t, braidBinary, ["serve", "--port", "0", "--draft", eagleHead(temporaryFolder(t), { read: [1, 4, 8] })]);
  assert.notEqual((await server.exited).code, 0);
  assert.match(server.errors + server.lines.join("\n"), /eagle_aux_hidden_state_layer_ids names 8 of a model of 8 layers/);
});

test("one with other tokens does, too", { skip: !process.env.BRAID_TEST_DATA && "BRAID_TEST_DATA is not set" }, async (t) => {
  const draft = path.join(process.env.BRAID_TEST_DATA, "models/stories260K-q8_0.gguf");
  const plain = await serve(t, ["--no-warmup", "--speculate", "off", "--kv-memory", "64M"]);
  const guessing = await serve(t, ["--no-warmup", "--draft", draft, "--speculate-always", "--kv-memory", "64M"]);
  const body = text({ speculative: { method: "draft" } });
  const answer = await (await post(`${guessing.url}/v1/completions`, body)).json();
  assert.deepEqual(answer_of(answer), answer_of(await (await post(`${plain.url}/v1/completions`, text())).json()));
  const { accepted_prediction_tokens: accepted, rejected_prediction_tokens: rejected } = answer.usage.completion_tokens_details;
  assert.ok(accepted + rejected > 0, "it guesses");
});

test("a draft that is none is refused before anything is served", async (t) => {
  for (const [args, pattern] of [
    [["--draft", "/nowhere.gguf"], /nowhere\.gguf/],
    [["--draft", "x.gguf", "--speculate", "off"], /--draft contradicts --speculate off/],
    [["--speculate", "draft"], /--draft/],
    [["--speculate", "off", "--speculate-always"], /--speculate-always contradicts --speculate off/],
    [["a.gguf", "b.gguf", "c.gguf", "--draft", "x.gguf", "--draft", "none"], /--draft is given 2 times for 3 models/],
  ]) {
    const server = new Process(t, braidBinary, ["serve", "--port", "0", ...args]);
    assert.notEqual((await server.exited).code, 0);
    assert.match(server.errors + server.lines.join("\n"), pattern);
  }
});
