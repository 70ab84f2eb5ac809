// Random schemas of strict functions under auto: every call validates, and until the first one nothing is sampled otherwise than without.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import Ajv2020 from "ajv/dist/2020.js";
import { serve } from "./support/processes.mjs";
import { events, post } from "./support/client.mjs";

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
async function whole(body) {
  const response = await post(`${url}/v1/chat/completions`, body);
  const answer = await response.json();
  assert.equal(response.status, 200, JSON.stringify(answer));
  const [choice] = answer.choices;
  return { calls: (choice.message.tool_calls ?? []).map((call) => call.function), ids: choice.token_ids,
    prompt: answer.prompt_token_ids, finish: choice.finish_reason, content: choice.message.content };
}

async function streamed(body) {
  const said = { calls: [], ids: [], content: "" };
  for await (const event of events(await post(`${url}/v1/chat/completions`, { ...body, stream: true }))) {
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
