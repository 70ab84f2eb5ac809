// Policies and rollouts: episodes that repeat to the bit, states that go on, log-probabilities that scoring gives again.
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { config, safetensors, tensors_of } from "./support/adapters.mjs";
import { serve, sourceFolder, temporaryFolder } from "./support/processes.mjs";
import { collect, eventually, metric, post, story } from "./support/client.mjs";

const demo = path.join(sourceFolder, "models/demo-q8_0.gguf");
const folder = (name) => path.join(sourceFolder, "test/model/reference/networks", name);

async function ask(server, route, body) {
  const response = await post(server.url + route, body);
  const answer = await response.json();
  assert.equal(response.status, 200, JSON.stringify(answer));
  return answer;
}
const act = (server, body) => ask(server, "/v1/rl/act", body);
const rollout = (server, body) => ask(server, "/v1/rl/rollout", body);

// An environment: the observation turns with the action and the step.
const observe = (action, step) => Array.from({ length: 5 }, (_, i) => Math.sin(1.3 * i + 0.7 * step + action));

// The states travel with the requests, or stay in a session.
async function episode(server, seed, session) {
  const steps = [];
  let action = 0;
  let hidden_states = null;
  for (let step = 0; step < 12; ++step) {
    const own = session ? { session, ...(step === 0 ? { seed } : {}) } : { hidden_states, seed, step };
    const answer = await act(server, { model_id: "gru", observations: [[observe(action, step)]], ...own });
    assert.equal(answer.step, step);
    hidden_states = answer.new_hidden_states;
    action = answer.actions[0][0];
    steps.push([action, answer.action_log_probs[0][0]]);
  }
  return steps;
}

test("an episode with a seed repeats to the bit, alone, beside a stream, and in a session", async (t) => {
  const server = await serve(t, [demo, folder("gru"), folder("mlp"), "--kv-memory", "64M"]);
  const first = await episode(server, 11);
  assert.ok(new Set(first.map(([action]) => action)).size > 1, "it always does the same");
  assert.notDeepEqual(await episode(server, 12), first);
  const stream = collect(await post(`${server.url}/v1/completions`, { prompt: story, max_tokens: 200, ignore_eos: true, stream: true }));
  const together = await Promise.all([11, 11, 11].map((seed, i) => episode(server, seed, i > 0 ? `env-${i}` : undefined)));
  assert.deepEqual(together, [first, first, first]);
  assert.ok((await stream).done);
});

test("a row's action does not depend on its place where it has a seed, and values are those of /v1/predict", async (t) => {
  const server = await serve(t, [folder("mlp"), "--kv-memory", "64M"]);
  const observations = Array.from({ length: 32 }, (_, row) => Array.from({ length: 7 }, (_, i) => Math.cos(row * 7 + i)));
  const seed = observations.map((_, row) => row * row);
  const all = await act(server, { observations, seed, step: 5 });
  const { outputs } = await ask(server, "/v1/predict", { inputs: { x: observations } });
  assert.deepEqual(all.value_estimates, outputs.value.map(([value]) => value));
  for (const [row, observation] of observations.entries()) {
    const alone = await act(server, { observations: [observation], seed: seed[row], step: 5 });
    assert.deepEqual([alone.actions[0], alone.action_log_probs[0]], [all.actions[row], all.action_log_probs[row]]);
    const expected = outputs.log_probabilities[row][all.actions[row]];
    assert.ok(Math.abs(alone.action_log_probs[0] - expected) <= 1e-5, `${alone.action_log_probs[0]}, log_softmax has ${expected}`);
  }
  const best = await act(server, { observations, deterministic: true });
  assert.deepEqual(best.actions, outputs.logits.map((row) => row.indexOf(Math.max(...row))));
});

test("a deviation that is learnt is a tensor like all others", async (t) => {
  const folder = path.join(temporaryFolder(t), "reach");
  mkdirSync(folder);
  writeFileSync(path.join(folder, "config.json"), JSON.stringify({ model_type: "braid-net", inputs: { x: { shape: ["batch", 2] } },
    layers: [{ name: "mean", type: "linear" }, { name: "log_std", type: "parameter" }], outputs: { mean: "mean", log_std: "log_std" },
    policy: { distribution: "gaussian", mean: "mean", log_std: "log_std" } }));
  const tensors = { "mean.weight": { shape: [1, 2], values: [0, 0] }, log_std: { shape: [1], values: [0] } };
  writeFileSync(path.join(folder, "model.safetensors"), safetensors(tensors));
  const server = await serve(t, [folder]);
  const step = async (deviation) => {
    const { actions: [[action]], action_log_probs: [told] } = await act(server, { observations: [[1, 2]], seed: 4 });
    const density = -0.5 * (action / deviation) ** 2 - Math.log(deviation) - 0.5 * Math.log(2 * Math.PI);
    assert.ok(Math.abs(told - density) < 1e-5, `${told} ${density}`);
    return action;
  };
  const wide = await step(1);
  const body = safetensors({ log_std: { shape: [1], values: [-1] } }, { model: "reach", partial: "true" });
  const updated = await fetch(`${server.url}/update_weights`, { method: "POST", headers: { "Content-Type": "application/octet-stream" }, body });
  assert.equal(updated.status, 200, await updated.text());
  const narrow = await step(Math.exp(-1));
  assert.ok(Math.abs(narrow - wide * Math.exp(-1)) < 1e-6, `${wide} ${narrow}`);
});

// What scoring prompt and completion as one prompt gives of the completion's tokens.
async function scores(server, model, prompt, completion) {
  const body = { model, prompt: [...prompt, ...completion], max_tokens: 1, prompt_logprobs: 0 };
  const answer = await ask(server, "/v1/completions", body);
  const told = answer.choices[0].prompt_logprobs ?? answer.prompt_logprobs;
  return completion.map((id, i) => told[prompt.length + i][id].logprob);
}

test("rollouts tell all tokens with the log-probabilities that scoring gives, to the bit", async (t) => {
  const server = await serve(t, [demo, "--kv-memory", "128M"]);
  const body = { prompt: [story, "Once upon a time"], n: 4, max_tokens: 24, temperature: 1.3, top_p: 0.9, seed: 5 };
  const [answer, stream] = await Promise.all([rollout(server, body),
    post(`${server.url}/v1/completions`, { prompt: story, max_tokens: 100, ignore_eos: true, stream: true }).then(collect)]);
  assert.ok(stream.done);
  assert.equal(answer.object, "rl.rollout");
  assert.equal(answer.groups.length, 2);
  for (const { prompt_token_ids, completions } of answer.groups) {
    assert.equal(completions.length, 4);
    assert.ok(new Set(completions.map(({ token_ids }) => token_ids.join())).size > 1);
    for (const { token_ids, logprobs, revisions, text } of completions) {
      assert.deepEqual(revisions, [{ revision: answer.revision, begin: 0, end: token_ids.length }]);
      assert.deepEqual(logprobs, await scores(server, undefined, prompt_token_ids, token_ids), text);
    }
  }
  assert.deepEqual((await rollout(server, body)).groups, answer.groups);
  assert.ok(answer.revision.length > 0);
  const [{ completions: plain }] = (await rollout(server, { prompt: story, n: 2, max_tokens: 20, temperature: 1, seed: 5 })).groups;
  for (const { logprobs, sampled_logprobs } of plain)
    sampled_logprobs.forEach((logprob, i) => assert.ok(Math.abs(logprob - logprobs[i]) < 1e-5, `${logprob} ${logprobs[i]}`));
  const [{ completions: [greedy] }] = (await rollout(server, { prompt: story, max_tokens: 5, temperature: 0 })).groups;
  assert.deepEqual(greedy.sampled_logprobs, [0, 0, 0, 0, 0]);
});

// An adapter of the embedded model with a head for one value, as PEFT saves it.
function write_valued(folder, seed) {
  const head = { weight: Array.from({ length: 512 }, (_, i) => Math.fround(Math.sin(seed + i) / 16)), bias: Math.fround(0.5) };
  mkdirSync(folder, { recursive: true });
  writeFileSync(path.join(folder, "adapter_config.json"), JSON.stringify({ ...config, modules_to_save: ["score"], task_type: "SEQ_CLS" }));
  const own = { "base_model.model.score.weight": { shape: [1, 512], values: head.weight }, "base_model.model.score.bias": { shape: [1], values: [head.bias] } };
  writeFileSync(path.join(folder, "adapter_model.safetensors"), safetensors({ ...tensors_of(seed), ...own }));
  return head;
}
// As the server sums: in double, in order.
const value_of = (head, vector) => Math.fround(vector.reduce((sum, x, i) => sum + head.weight[i] * Math.fround(x), head.bias));

test("an adapter with a head values each state, and a reference scores the same tokens", async (t) => {
  const folder = path.join(temporaryFolder(t), "valued");
  const head = write_valued(folder, 3);
  const server = await serve(t, [demo, "--kv-memory", "128M", "--lora", `valued=${folder}`]);
  const body = { model: "valued", prompt: "Once upon a time", n: 3, max_tokens: 12, seed: 2 };
  const answer = await rollout(server, { ...body, reference: "demo-q8_0", return_values: true, return_hidden: true });
  const [{ prompt_token_ids, completions }] = answer.groups;
  for (const { token_ids, logprobs, reference_logprobs, values, hidden } of completions) {
    assert.equal(values.length, token_ids.length + 1);
    assert.deepEqual(hidden.map(({ vector }) => value_of(head, vector)), values.slice(1).map(Math.fround));
    assert.deepEqual(logprobs, await scores(server, "valued", prompt_token_ids, token_ids));
    assert.deepEqual(reference_logprobs, await scores(server, "demo-q8_0", prompt_token_ids, token_ids));
    assert.notDeepEqual(reference_logprobs, logprobs);
    const { data } = await ask(server, "/v1/rewards/score", { model: "valued", input: [...prompt_token_ids, ...token_ids] });
    assert.equal(data[0].score, values.at(-1));
  }
  const plain = await rollout(server, body);
  assert.deepEqual(plain.groups[0].completions.map(({ token_ids }) => token_ids), completions.map(({ token_ids }) => token_ids));
  const acted = await act(server, { model: "valued", observations: [prompt_token_ids], seed: 2 });
  assert.deepEqual(acted.value_estimates, [completions[0].values[0]]);
  const refused = await post(`${server.url}/v1/rl/rollout`, { ...body, model: "demo-q8_0", return_values: true });
  assert.equal((await refused.json()).error.param, "return_values");
});

test("a rollout that was accepted is reviewed while the server drains", async (t) => {
  const server = await serve(t, [demo, "--kv-memory", "64M"]);
  const body = { prompt: story, max_tokens: 300, ignore_eos: true, reference: "demo-q8_0", return_hidden: [-1] };
  const rolling = rollout(server, body);
  await eventually("it has begun", async () => (await metric(server.url, "braid_generation_tokens_total")) > 20);
  server.child.kill("SIGTERM");
  const [{ completions: [{ logprobs, reference_logprobs, hidden }] }] = (await rolling).groups;
  assert.deepEqual(reference_logprobs, logprobs);
  assert.equal(hidden.length, 1);
  assert.equal((await server.exited).code, 0);
});

test("rewards are those of the adapted model, with the model's head or the adapter's own", async (t) => {
  const reward = path.join(sourceFolder, "test/model/reference/encoders/llama-reward");
  const draw = (rows, columns, seed) => ({ shape: [rows, columns], values: Array.from({ length: rows * columns }, (_, i) => Math.sin(seed + 1.7 * i) / 4) });
  const lora = {};
  for (let layer = 0; layer < 4; ++layer) {
    lora[`base_model.model.model.layers.${layer}.mlp.down_proj.lora_A.weight`] = draw(2, 48, layer);
    lora[`base_model.model.model.layers.${layer}.mlp.down_proj.lora_B.weight`] = draw(32, 2, layer + 9);
  }
  const own = { weight: draw(1, 32, 77).values.map(Math.fround), bias: 0 };
  const folders = temporaryFolder(t);
  const write = (name, tensors) => {
    mkdirSync(path.join(folders, name));
    writeFileSync(path.join(folders, name, "adapter_config.json"), JSON.stringify({ peft_type: "LORA", r: 2, lora_alpha: 4, target_modules: ["down_proj"] }));
    writeFileSync(path.join(folders, name, "adapter_model.safetensors"), safetensors(tensors));
    return `${name}=${path.join(folders, name)}`;
  };
  const adapters = [write("tuned", lora), write("headed", { ...lora, "base_model.model.score.weight": { shape: [1, 32], values: own.weight } })];
  const server = await serve(t, [reward, "--kv-memory", "64M", ...adapters.flatMap((each) => ["--lora", each])]);
  const bytes = readFileSync(path.join(reward, "model.safetensors"));
  const length = Number(bytes.readBigUInt64LE(0));
  const { data_offsets: [begin, end], dtype } = JSON.parse(bytes.subarray(8, 8 + length))["score.weight"];
  assert.equal(dtype, "BF16");  // the upper half of a float32
  const halves = new Uint16Array(Uint8Array.from(bytes.subarray(8 + length + begin, 8 + length + end)).buffer);
  const base = { weight: new Float32Array(Uint32Array.from(halves, (half) => half << 16 >>> 0).buffer), bias: 0 };
  const told = [];
  for (const [model, head] of [["llama-reward", base], ["tuned", base], ["headed", own]]) {
    const input = "she sells sea shells";
    const vector = (await ask(server, "/v1/embeddings", { model, input, normalize: false })).data[0].embedding;
    const score = (await ask(server, "/v1/rewards/score", { model, input })).data[0].score;
    assert.equal(Math.fround(score), value_of(head, vector), model);
    told.push(score);
  }
  assert.equal(new Set(told).size, 3);
});

test("a verifier's expression ends a rollout, and tokens go in as they came out", async (t) => {
  const server = await serve(t, [demo, "--kv-memory", "64M"]);
  const [{ prompt_token_ids, completions: [free] }] = (await rollout(server, { prompt: story, max_tokens: 60, temperature: 0 })).groups;
  const word = free.text.match(/[a-z]{5}/)[0];
  const [{ completions: [cut] }] = (await rollout(server, { prompt: prompt_token_ids, max_tokens: 60, temperature: 0, stop_regex: word })).groups;
  assert.equal(cut.finish_reason, "stop");
  assert.equal(cut.stop_reason, word);
  assert.equal(cut.text, free.text.slice(0, free.text.indexOf(word) + word.length));
  assert.deepEqual(cut.token_ids, free.token_ids.slice(0, cut.token_ids.length));
  assert.deepEqual(cut.logprobs, free.logprobs.slice(0, cut.logprobs.length));
  const chat = await rollout(server, { messages: [{ role: "user", content: "Hi" }], max_tokens: 5, n: 2, seed: 1 });
  assert.equal(chat.groups[0].completions.length, 2);
});

test("a language model acts on texts, chats and tokens", async (t) => {
  const server = await serve(t, [demo, "--kv-memory", "64M"]);
  const body = { model_id: "demo-q8_0", observations: ["Left or right?", [{ role: "user", content: "Left or right?" }]], actions: ["left", "right"], max_tokens: 8 };
  const answer = await act(server, { ...body, deterministic: true });
  assert.ok(answer.actions.every((action) => body.actions.includes(action)), answer.actions.join());
  assert.equal(answer.actions[0], answer.actions[1]);
  assert.deepEqual(answer.token_log_probs[0], answer.token_log_probs[1]);
  const drawn = await Promise.all([1, 2, 3, 4, 5, 6].map((seed) => act(server, { ...body, observations: [[5, 6, 7]], seed })));
  assert.ok(drawn.every(({ actions }) => body.actions.includes(actions[0])));
  assert.deepEqual((await act(server, { ...body, observations: [[5, 6, 7]], seed: 3 })).action_token_ids, drawn[2].action_token_ids);
});

// The pole on a cart of Barto, Sutton and Anderson (1983).
class CartPole {
  steps = [];
  constructor(number) { this.state = [1, 2, 3, 4].map((i) => 0.03 * Math.sin(i * number + i)); }
  get fallen() { return Math.abs(this.state[0]) > 2.4 || Math.abs(this.state[2]) > 0.2095; }
  move(action) {
    const [place, speed, angle, turn] = this.state;
    const push = ((action === 1 ? 10 : -10) + 0.05 * turn ** 2 * Math.sin(angle)) / 1.1;
    const spin = (9.8 * Math.sin(angle) - Math.cos(angle) * push) / (0.5 * (4 / 3 - 0.1 * Math.cos(angle) ** 2 / 1.1));
    const acceleration = push - 0.05 * spin * Math.cos(angle) / 1.1;
    this.state = [place + 0.02 * speed, speed + 0.02 * acceleration, angle + 0.02 * turn, turn + 0.02 * spin];
  }
}

const carts = 16, longest = 120;

// Each cart's states, actions and the log-probabilities that the server told.
async function play(server, round) {
  const all = Array.from({ length: carts }, (_, i) => new CartPole(i + 1));
  for (let step = 0, standing = all; step < longest && standing.length > 0; ++step, standing = standing.filter((cart) => !cart.fallen)) {
    const seed = standing.map((cart) => 1000 * round + all.indexOf(cart));
    const { actions, action_log_probs } = await act(server, { observations: standing.map(({ state }) => state), seed, step });
    standing.forEach((cart, i) => {
      cart.steps.push({ state: cart.state, action: actions[i], probability: Math.exp(action_log_probs[i]) });
      cart.move(actions[i]);
    });
  }
  return all.map(({ steps }) => steps);
}

// REINFORCE (Williams 1992): a step along the gradient of the log-probabilities, each times how much better than usual it went on.
function improve(weights, episodes) {
  const steps = episodes.flatMap((steps) => steps.map((step, i) => ({ ...step, returned: steps.length - i })));
  const mean = steps.reduce((sum, { returned }) => sum + returned, 0) / steps.length;
  const gradient = new Array(8).fill(0);
  for (const { state, action, probability, returned } of steps)
    state.forEach((x, i) => {
      const part = (returned - mean) * (1 - probability) * x;
      gradient[4 * action + i] += part;
      gradient[4 * (1 - action) + i] -= part;
    });
  const length = Math.hypot(...gradient);
  return weights.map((weight, i) => Math.fround(weight + 0.5 * gradient[i] / length));
}

async function learn(server, seed) {
  let weights = new Array(8).fill(0);
  const curve = [];
  for (let round = 0; round < 12; ++round) {
    const body = safetensors({ "policy.weight": { shape: [2, 4], values: weights } }, { model: "cart" });
    const updated = await fetch(`${server.url}/update_weights`, { method: "POST", headers: { "Content-Type": "application/octet-stream" }, body });
    const { revision, error } = await updated.json();
    assert.equal(updated.status, 200, JSON.stringify(error));
    const episodes = await play(server, 100 * seed + round);
    const told = await act(server, { observations: [[0, 0, 0, 0]] });
    assert.equal(told.revision, revision);
    curve.push({ revision, mean: episodes.reduce((sum, steps) => sum + steps.length, 0) / carts });
    weights = improve(weights, episodes);
  }
  return curve;
}

test("a policy learns to balance a pole by REINFORCE through the API, the same curve twice with one seed", async (t) => {
  const folder = path.join(temporaryFolder(t), "cart");
  mkdirSync(folder);
  writeFileSync(path.join(folder, "config.json"), JSON.stringify({ model_type: "braid-net", inputs: { x: { shape: ["batch", 4] } },
    layers: [{ name: "policy", type: "linear" }], outputs: { logits: "policy" }, policy: { logits: "logits" } }));
  writeFileSync(path.join(folder, "model.safetensors"), safetensors({ "policy.weight": { shape: [2, 4], values: new Array(8).fill(0) } }));
  const server = await serve(t, [folder]);
  const curve = await learn(server, 1);
  const last = curve.slice(-3).reduce((sum, { mean }) => sum + mean / 3, 0);
  assert.ok(last > 3 * curve[0].mean && last > 75, curve.map(({ mean }) => mean).join(" "));
  assert.deepEqual(await learn(server, 1), curve);
  assert.notDeepEqual((await learn(server, 2)).map(({ mean }) => mean), curve.map(({ mean }) => mean));
});

test("a head fitted to preferences in the background scores as they were, beside streams", async (t) => {
  const server = await serve(t, [demo, "--kv-memory", "128M", "--adapter-dir", temporaryFolder(t)]);
  const animals = ["fox", "bear", "mouse", "owl", "cat", "dog", "frog", "goose"];
  const data = animals.map((animal) => ({ chosen: `The ${animal} was happy and played all day.`, rejected: `The ${animal} was sad and cried all day.` }));
  const stream = post(`${server.url}/v1/completions`, { prompt: story, max_tokens: 200, ignore_eos: true, stream: true }).then(collect);
  const finished = async (body) => {
    let job = await ask(server, "/v1/training/jobs", body);
    while (job.finished === null) job = await (await fetch(`${server.url}/v1/training/jobs/${job.id}`)).json();
    return job;
  };
  const job = await finished({ name: "happy", data, held_out: 0.25, checkpoint_every: 50 });
  assert.equal(job.status, "succeeded", job.error);
  assert.equal(job.learnt.accuracy, 1);
  assert.equal(job.held_out.accuracy, 1);
  assert.ok((await stream).done);
  const score = async (input) => (await ask(server, "/v1/rewards/score", { model: "happy", input })).data.map((each) => each.score);
  const [liked, disliked] = await score(["The hare was happy and played all day.", "The hare was sad and cried all day."]);
  assert.ok(liked > disliked, `${liked} ${disliked}`);
  const adapter = await (await fetch(`${server.url}/v1/adapters/happy`)).json();
  assert.equal(adapter.revision, job.revision);
  assert.equal((await finished({ name: "again", data, held_out: 0.25 })).revision, job.revision);
  const rated = await finished({ name: "rated", data: data.flatMap(({ chosen, rejected }) => [{ input: chosen, score: 2 }, { input: rejected, score: -1 }]) });
  assert.ok(rated.learnt.loss < 0.05, JSON.stringify(rated.learnt));
});

test("LoRA beside the last layer learns what is preferred, and goes on from a checkpoint to the same revision", async (t) => {
  const server = await serve(t, [demo, "--kv-memory", "128M", "--adapter-dir", temporaryFolder(t)]);
  const job_of = async (id) => (await fetch(`${server.url}/v1/training/jobs/${id}`)).json();
  const finished = async (job) => {
    while (job.finished === null) job = await job_of(job.id);
    return job;
  };
  const animals = ["fox", "bear", "mouse", "owl", "cat", "dog", "frog", "goose"];
  const data = animals.map((animal) => ({ chosen: `The ${animal} was happy and played all day.`, rejected: `The ${animal} was sad and cried all day.` }));
  const body = { data, held_out: 0.25, checkpoint_every: 1, epochs: 12, learning_rate: 0.01, lora_config: { rank: 4, target_modules: ["q_proj", "k_proj", "v_proj", "down_proj"], batch_size: 2, seed: 5 } };
  const train = (more) => ask(server, "/v1/training/jobs", { ...body, ...more });
  const whole = await finished(await train({ name: "whole" }));
  assert.equal(whole.status, "succeeded", whole.error);
  assert.equal(whole.learnt.accuracy, 1);
  assert.ok(whole.learnt.loss < 0.5 && whole.held_out.loss < Math.log(2), JSON.stringify(whole));
  assert.deepEqual(whole.lora_config, { rank: 4, alpha: 16, target_modules: ["q_proj", "k_proj", "v_proj", "down_proj"] });

  // What is held out is scored as the job has measured it, but for the rounding of served products.
  const score = async (input) => (await ask(server, "/v1/rewards/score", { model: "whole", input })).data.map((each) => each.score);
  let loss = 0;
  for (const { chosen, rejected } of data.slice(-2)) {
    const [liked, disliked] = await score([chosen, rejected]);
    loss += Math.log1p(Math.exp(disliked - liked)) / 2;
  }
  assert.ok(Math.abs(loss - whole.held_out.loss) < 0.05 * (1 + loss), `${loss} ${whole.held_out.loss}`);

  let part = await train({ name: "part" });
  while (part.epochs.done === 0) part = await job_of(part.id);
  await ask(server, `/v1/training/jobs/${part.id}/cancel`, {});
  await finished(part);
  const rest = await finished(await train({ name: "part", resume: true }));
  if (rest.status === "succeeded") assert.equal(rest.revision, whole.revision);
  else assert.match(rest.error, /is of epoch 12/); // it was over before it was cancelled
  const refused = await post(server.url + "/v1/training/jobs", { ...body, name: "again", lora_config: { target_modules: ["in_proj"] } });
  assert.equal(refused.status, 400);
  assert.match((await refused.json()).error.message, /'in_proj', but beside q_proj, k_proj/);
});
