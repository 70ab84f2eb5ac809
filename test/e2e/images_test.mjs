// Models that see, over HTTP: a PNG file through processor, tower and language model against what transformers gives for it, the same bits
// when it is asked about again, beside others and after preemptions.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { braid, serve, sourceFolder, temporaryFolder } from "./support/processes.mjs";
import { collect, frees_everything, metric, post } from "./support/client.mjs";
import { write_llava_tower } from "./support/mmproj.mjs";

const images = path.join(sourceFolder, "test/model/reference/images");
const references_of = (name) => JSON.parse(readFileSync(path.join(images, name, "reference.json"), "utf8"));
const reference_of = (name) => references_of(name).picture;
const picture = `data:image/png;base64,${readFileSync(path.join(images, "picture.png")).toString("base64")}`;

// What the models' chat templates write in the place of an image.
const placeholders = {
  llava: "<image>", "llava-next": "<image>", "llava-onevision": "<image>", internvl: "<IMG_CONTEXT>", "internvl-chat": "<image>", pixtral: "[IMG]", mistral3: "[IMG]",
  "qwen2-vl": "<|vision_start|><|image_pad|><|vision_end|>", "qwen2.5-vl": "<|vision_start|><|image_pad|><|vision_end|>",
  "qwen3-vl": "<|vision_start|><|image_pad|><|vision_end|>", "qwen3.5": "<|vision_start|><|image_pad|><|vision_end|>", "kimi-k2.5": "<image>",
  idefics3: "<image>", smolvlm: "<image>", gemma3: "<start_of_image>", gemma4: "<image_soft_token>", "gemma4-small": "<image_soft_token>",
  "lfm2-vl": "<image>", "minicpm-v": "<|image_pad|>", "minicpm-v2.6": "(<image>./</image>)",
};

// Texts and images as they come, and nothing around them.
const template = (placeholder) =>
  "{%- for message in messages -%}{%- if message.content is string -%}{{ message.content }}{%- else -%}{%- for part in message.content -%}" +
  `{%- if part.type == 'image' -%}{{ '${placeholder}' }}{%- else -%}{{ part.text }}{%- endif -%}{%- endfor -%}{%- endif -%}{%- endfor -%}`;

function serve_models(t, names, options = [], kv_memory = "64M") {
  const folder = temporaryFolder(t);
  const templates = names.map((name) => {
    const file = path.join(folder, `${name}.jinja`);
    writeFileSync(file, template(placeholders[name]));
    return ["--chat-template", file];
  });
  return serve(t, [...names.map((name) => path.join(images, name)), ...templates.flat(), "--dtype", "f32", "--kv-dtype", "f32", "--kv-memory",
    kv_memory, ...options]);
}

const photo = `data:image/jpeg;base64,${readFileSync(path.join(sourceFolder, "test/images/pictures/photo.jpg")).toString("base64")}`;

const shown = (url = picture) => ({ type: "image_url", image_url: { url } });
const question = (model, more = {}, content = [{ type: "text", text: "describe " }, shown(), { type: "text", text: " in one line" }]) =>
  ({ model, messages: [{ role: "user", content }], temperature: 0, max_tokens: 8, ignore_eos: true, logprobs: true, top_logprobs: 20,
    return_token_ids: true, ...more });

async function ask(server, body, status = 200) {
  const response = await post(`${server.url}/v1/chat/completions`, body);
  const answer = await response.json();
  assert.equal(response.status, status, `${body.model}: ${JSON.stringify(answer)}`);
  return answer;
}

const log_softmax = (logits) => {
  const top = Math.max(...logits);
  const sum = top + Math.log(logits.reduce((all, logit) => all + Math.exp(logit - top), 0));
  return logits.map((logit) => logit - sum);
};
const logprobs_of = (answer) => answer.choices[0].logprobs.content.map(({ token, logprob, top_logprobs }) => [token, logprob, top_logprobs]);

// The whole prompt, the first token's best ones, and all tokens up to one that two were equally good for.
function is_as_expected(name, answer, reference) {
  assert.deepEqual(answer.prompt_token_ids, reference.input_ids, name);
  const best = log_softmax(reference.last_logits).sort((a, b) => b - a).slice(0, 20);
  answer.choices[0].logprobs.content[0].top_logprobs.forEach(({ logprob }, i) =>
    assert.ok(Math.abs(logprob - best[i]) < 2e-3, `${name}, best token ${i}: ${logprob}, transformers has ${best[i]}`));
  const sure = reference.margins.findIndex((margin) => margin < 4e-3);
  const count = sure < 0 ? reference.greedy.length : sure;
  assert.deepEqual(answer.choices[0].token_ids.slice(0, count), reference.greedy.slice(0, count), name);
}

test("what a picture's file says is what transformers reads in it, and the same bits when asked again", async (t) => {
  const names = Object.keys(placeholders);
  const server = await serve_models(t, names);
  for (const name of names) {
    const reference = reference_of(name);
    const answer = await ask(server, question(name));
    is_as_expected(name, answer, reference);
    const again = await ask(server, question(name));
    assert.deepEqual(logprobs_of(again), logprobs_of(answer), name);
    assert.equal(again.usage.prompt_tokens_details.cached_tokens, reference.input_ids.length - 1, name);
  }
});

test("several images, in several turns and beside others, give the same bits alone and together", async (t) => {
  const names = ["llava", "qwen2-vl", "pixtral"];
  const server = await serve_models(t, names);
  const talk = (name, i) => ({
    ...question(name),
    messages: [{ role: "system", content: `you are number ${i}` },
      { role: "user", content: [shown(), { type: "text", text: " and " }, shown()] }, { role: "assistant", content: "two" },
      { role: "user", content: [{ type: "text", text: "what is to be seen here? " }, shown()] }],
  });
  const talks = names.flatMap((name) => [0, 1, 2, 3].map((i) => talk(name, i)));
  const alone = [];
  for (const body of talks) alone.push(logprobs_of(await ask(server, { ...body, cache_salt: "alone" })));
  const together = await Promise.all(talks.map((body) => ask(server, { ...body, cache_salt: "together" })));
  together.forEach((answer, i) => assert.deepEqual(logprobs_of(answer), alone[i], talks[i].model));
  await frees_everything(server.url);
});

// A small PNG file and a JPEG file: MiniCPM-V cuts the second into slices and numbers both, LLaVA-OneVision shows each of several as one tile,
// and Qwen2-VL's positions go on behind each.
test("two files in one message say what they say to transformers", async (t) => {
  const names = ["minicpm-v", "minicpm-v2.6", "llava-onevision", "qwen2-vl", "gemma3"];
  const server = await serve_models(t, names);
  const two = [{ type: "text", text: "describe " }, shown(), shown(photo), { type: "text", text: " in one line" }];
  for (const name of names) {
    const reference = references_of(name).several;
    const answer = await ask(server, question(name, {}, two));
    is_as_expected(name, answer, reference);
    const again = await ask(server, question(name, {}, two));
    assert.deepEqual(logprobs_of(again), logprobs_of(answer), name);
    assert.equal(again.usage.prompt_tokens_details.cached_tokens, answer.usage.prompt_tokens - 1, name);
    const alone = await ask(server, question(name));
    assert.equal(alone.usage.prompt_tokens, reference_of(name).input_ids.length, name);
  }
});

// Blocks of 8 tokens end within images, whose tokens Gemma 3 lets see each other both ways, and rotary positions of Qwen2-VL run behind.
test("streams go on, and answers stay the same bits, when blocks run out beside images", async (t) => {
  const preempted = [];
  for (const [name, memory] of [["llava", "48K"], ["gemma3", "112K"], ["qwen2-vl", "48K"]]) {
    const server = await serve_models(t, [name], ["--ctx", "128", "--block-size", "8"], memory);
    const long = { max_tokens: 40, ignore_eos: true };
    const expected = logprobs_of(await ask(server, question(name, long)));
    const bodies = Array.from({ length: 12 }, (_, i) => question(name, { ...long, cache_salt: `client ${i % 4}` }));
    let times = 0;  // who arrives later than others end, as on a busy machine, takes no blocks from them
    for (let burst = 0; burst < 10 && times === 0; ++burst) {
      const answers = await Promise.all(bodies.map((body) => ask(server, body)));
      for (const answer of answers) assert.deepEqual(logprobs_of(answer), expected, name);
      times = await metric(server.url, "braid_preemptions_total");
    }
    preempted.push(times);
    const stream = await collect(await post(`${server.url}/v1/chat/completions`, question(name, { stream: true })));
    assert.ok(stream.done);
    await frees_everything(server.url);
  }
  assert.ok(preempted.every((times) => times > 0), `blocks did run out: ${preempted}`);
});

test("a file with the tower beside a GGUF file, or named by --mmproj, gives the folder's answers", async (t) => {
  const folder = temporaryFolder(t);
  const text = path.join(folder, "llava.gguf");
  const tower = path.join(folder, "mmproj-llava.gguf");
  const jinja = path.join(folder, "llava.jinja");
  writeFileSync(jinja, template(placeholders.llava));
  assert.equal((await braid(t, ["convert", path.join(images, "llava"), text])).code, 0);
  const exact = ["--dtype", "f32", "--kv-dtype", "f32", "--kv-memory", "64M", "--chat-template", jinja];
  const blind = await serve(t, [text, ...exact]);
  await ask(blind, question("llava"), 400);
  const expected = logprobs_of(await ask(await serve_models(t, ["llava"]), question("llava")));
  const elsewhere = path.join(temporaryFolder(t), "eyes.gguf");
  write_llava_tower(path.join(images, "llava"), elsewhere);
  const named = await serve(t, [text, "--mmproj", elsewhere, ...exact]);
  assert.deepEqual(logprobs_of(await ask(named, question("llava"))), expected);
  write_llava_tower(path.join(images, "llava"), tower);
  const found = await serve(t, [text, ...exact]);
  assert.deepEqual(logprobs_of(await ask(found, question("llava"))), expected);
  const wrong = await braid(t, ["serve", text, "--mmproj", text, "--port", "0", ...exact]);
  assert.notEqual(wrong.code, 0);
  assert.match(wrong.stderr, /no file of an image tower/);
});

test("an image that is no image is refused with a sentence, and so is one where nothing sees", async (t) => {
  const server = await serve_models(t, ["llava"]);
  const broken = await ask(server, question("llava", {}, [shown("data:image/png;base64,aGVsbG8=")]), 400);
  assert.match(broken.error.message, /image/);
  const answer = await ask(server, question("llava", {}, [{ type: "text", text: "describe" }]));
  assert.ok(answer.usage.prompt_tokens < 16, "a text alone");
});
