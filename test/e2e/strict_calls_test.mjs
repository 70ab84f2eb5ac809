// Random schemas of strict functions under auto: every call validates, and until the first one nothing is sampled otherwise than without.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";
import Ajv2020 from "ajv/dist/2020.js";
import { serve } from "./support/processes.mjs";
import { events, post } from "./support/client.mjs";

const rounds = Number(process.env.STRICT_ROUNDS ?? 4);  // of each other form
const cleanups = [];
let url;

before(async () => { url = (await serve({ after: (cleanup) => cleanups.push(cleanup) })).url; });
after(async () => { for (const cleanup of cleanups) await cleanup(); });

// mulberry32: the same schemas in every run.
function random_of(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

function random_schema(random, depth) {
  const pick = (list) => list[Math.floor(random() * list.length)];
  const upto = (most) => Math.floor(random() * (most + 1));
  const kinds = ["string", "enum", "pattern", "integer", "number", "boolean", "const", ...(depth > 0 ? ["array", "object", "anyOf"] : [])];
  switch (pick(kinds)) {
    case "string": { const least = upto(3); return { type: "string", minLength: least, maxLength: least + upto(12) }; }
    case "enum": return { enum: [["red", "green", "blue"], [1, 2, 3], ["a", null, true]][upto(2)] };
    case "pattern": return { type: "string", pattern: pick(["^[a-z]{2,5}$", "^\\d{3}-\\d{2}$", "^(yes|no)$"]) };
    case "integer": { const least = upto(100) - 50; return { type: "integer", minimum: least, maximum: least + upto(1000) }; }
    case "number": return { type: "number", minimum: 0, maximum: 10 };
    case "boolean": return { type: "boolean" };
    case "const": return { const: pick(["fixed", 7, false]) };
    case "array": return { type: "array", items: random_schema(random, depth - 1), minItems: upto(2), maxItems: 2 + upto(2) };
    case "anyOf": return { anyOf: [{ type: "null" }, random_schema(random, depth - 1)] };
    default: return random_object(random, depth - 1);
  }
}

function random_object(random, depth) {
  const names = ["location", "unit", "days", "detail", "kind"].slice(0, 1 + Math.floor(random() * 5));
  return { type: "object", additionalProperties: false, required: names.filter(() => random() < 0.7),
    properties: Object.fromEntries(names.map((name) => [name, random_schema(random, depth)])) };
}

// The calls of an answer, and the ids of all its tokens.
async function whole(body, at = url) {
  const response = await post(`${at}/v1/chat/completions`, body);
  const answer = await response.json();
  assert.equal(response.status, 200, JSON.stringify(answer));
  const [choice] = answer.choices;
  return { calls: (choice.message.tool_calls ?? []).map((call) => call.function), ids: choice.token_ids,
    prompt: answer.prompt_token_ids, finish: choice.finish_reason, content: choice.message.content };
}

async function streamed(body, at = url) {
  const said = { calls: [], ids: [], content: "" };
  for await (const event of events(await post(`${at}/v1/chat/completions`, { ...body, stream: true }))) {
    if (event === "[DONE]") continue;
    assert.ok(!event.error, JSON.stringify(event));
    said.prompt ??= event.prompt_token_ids;
    for (const { delta, token_ids, finish_reason } of event.choices) {
      said.ids.push(...(token_ids ?? []));
      said.content += delta.content ?? "";
      said.finish = finish_reason ?? said.finish;
      for (const { index, function: part } of delta.tool_calls ?? []) {
        said.calls[index] ??= { name: "", arguments: "" };
        said.calls[index].name += part.name ?? "";
        said.calls[index].arguments += part.arguments ?? "";
      }
    }
  }
  return said;
}

test("calls of strict functions validate, and what stands before them is the model's own", async () => {
  const { tokens: [marker] } = await (await post(`${url}/tokenize`, { content: "<tool_call>" })).json();
  const random = random_of(37);
  const ajv = new Ajv2020({ strict: false });
  const questions = ["What is the weather in Paris?", "What is the weather in Paris and Berlin?", "Hello! What is your name?", "What is 17 + 25?"];
  let seen = 0, spoken = 0;
  for (let round = 0; round < 24; ++round) {
    const functions = ["get_weather", "find_place"].map((name) => ({ name, parameters: random_object(random, 2), strict: true }));
    const valid = Object.fromEntries(functions.map(({ name, parameters }) => [name, ajv.compile(parameters)]));
    const body = { messages: [{ role: "user", content: questions[round % questions.length] }], seed: round, temperature: round % 3 / 2,
      max_tokens: 300, tools: functions.map((one) => ({ type: "function", function: one })), return_token_ids: true };
    const answers = [await whole(body), await streamed(body)];
    assert.deepEqual(answers[1].ids, answers[0].ids);
    assert.deepEqual(answers[1].calls, answers[0].calls);
    for (const { calls, finish } of answers) {
      for (const [i, call] of calls.entries()) {
        assert.ok(call.name in valid, `${call.name} was not declared`);
        if (finish === "length" && i === calls.length - 1) continue;  // cut off within it
        assert.ok(valid[call.name](JSON.parse(call.arguments)), `${call.arguments}: ${ajv.errorsText(valid[call.name].errors)}`);
        ++seen;
      }
    }
    const { ids, prompt } = answers[0];
    const begin = ids.indexOf(marker);
    const before = begin < 0 ? ids : ids.slice(0, begin + 1);
    const plain = await (await post(`${url}/v1/completions`,
      { prompt_token_ids: prompt, seed: round, temperature: body.temperature, max_tokens: before.length, return_token_ids: true })).json();
    assert.deepEqual(plain.choices[0].token_ids, before, `round ${round}`);
    if (begin < 0) ++spoken;
  }
  assert.ok(seen >= 10, `${seen} calls`);
  assert.ok(spoken >= 3, `${spoken} answers without one`);
});

// By what shows a family's form in its template: where its calls begin. The first is the form of templates that tell of no tools.
const forms = { "": /^\s*[[{]|```json|<tool_call>/, "tools <|python_tag|>": /^\s*[[{]|<\|python_tag\|>/, "tools [func_name1(": /^\s*[[{]|<\|python_start\|>/,
  "tools <|tool_call_start|>": /<\|tool_call_start\|>/, "tools [TOOL_CALLS]": /\[TOOL_CALLS\]/, "tools [TOOL_CALLS][ARGS]": /\[TOOL_CALLS\]/,
  "tools <function= <parameter=": /<function=/, "tools <arg_key> <tool_call>": /<tool_call>/, "tools <TOOLCALL>": /<TOOLCALL>/ };

test("the same of the other forms of calls", async (t) => {
  const folder = mkdtempSync(path.join(tmpdir(), "braid-forms-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const random = random_of(41);
  const ajv = new Ajv2020({ strict: false });
  let compared = 0;
  for (const [form, begins] of Object.entries(forms)) {
    const file = path.join(folder, "template");
    writeFileSync(file, `{#- ${form} -#}{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}<|im_start|>assistant\n`);
    const server = await serve(t, ["--chat-template", file, "--threads", "1"]);
    for (let round = 0; round < rounds; ++round) {
      const functions = ["get_weather", "find_place"].map((name) => ({ name, parameters: random_object(random, 2), strict: true }));
      const valid = Object.fromEntries(functions.map(({ name, parameters }) => [name, ajv.compile(parameters)]));
      const body = { messages: [{ role: "user", content: round % 2 ? "Tell me a story." : "What is the weather in Paris?" }], seed: round, temperature: round % 3 / 2,
        max_tokens: 120, tools: functions.map((one) => ({ type: "function", function: one })), return_token_ids: true };
      const answers = [await whole(body, server.url), await streamed(body, server.url)];
      assert.deepEqual(answers[1].ids, answers[0].ids, form);
      assert.deepEqual(answers[1].calls, answers[0].calls, form);
      const { calls, finish, ids, prompt } = answers[0];
      for (const [i, call] of calls.entries()) {
        assert.ok(call.name in valid, `${form}: ${call.name} was not declared`);
        if (finish === "length" && i === calls.length - 1) continue;
        assert.ok(valid[call.name](JSON.parse(call.arguments)), `${form}: ${call.arguments}: ${ajv.errorsText(valid[call.name].errors)}`);
      }
      // Up to where a call may begin; of an answer that has none, all of it.
      let before = ids.length;
      for (let count = 1; count <= ids.length && before === ids.length; ++count) {
        const { content } = await (await post(`${server.url}/detokenize`, { tokens: ids.slice(0, count) })).json();
        if (begins.test(content)) before = count - 1;
      }
      if (before === 0) continue;
      const plain = await (await post(`${server.url}/v1/completions`,
        { prompt_token_ids: prompt, seed: round, temperature: body.temperature, max_tokens: before, return_token_ids: true })).json();
      assert.deepEqual(plain.choices[0].token_ids, ids.slice(0, before), `${form} round ${round}`);
      ++compared;
    }
    server.child.kill("SIGTERM");
    await server.exited;
  }
  assert.ok(compared >= 5 * rounds, `${compared} answers were compared`);
});
