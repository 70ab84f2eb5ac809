// Random schemas of strict functions under auto: every call validates, and until the first one nothing is sampled otherwise than without.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";
import Ajv2020 from "ajv/dist/2020.js";
import { serve } from "./support/processes.mjs";
import { events, post } from "./support/client.mjs";

const rounds = 4;  // of each other form
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

// What cannot be honoured of a function's schema, the path of it within the schema, and whether the rest binds.
const kind = { enum: [1] };
const object_of = (city) => ({ type: "object", properties: { city, kind }, required: ["kind"] });
const unusable = {
  "required within a property": [object_of({ type: "string", required: true }), ".properties.city.required", true],
  "a type that there is not": [object_of({ type: "any" }), ".properties.city.type", true],
  "an enum without a value": [object_of({ enum: [] }), ".properties.city.enum", true],
  "an enum of another type": [object_of({ type: "string", enum: [1] }), ".properties.city.enum", true],
  "a bound that is a text": [object_of({ type: "string", maxLength: "9" }), ".properties.city.maxLength", true],
  "a property that is no schema": [object_of("string"), ".properties.city", true],
  "a reference to nothing": [object_of({ $ref: "#/$defs/City" }), ".properties.city.$ref", true],
  "a reference to itself": [{ ...object_of({ $ref: "#/$defs/City" }), $defs: { City: { $ref: "#/$defs/City" } } }, ".$defs.City.$ref", true],
  "unique items": [object_of({ type: "array", items: { type: "string" }, uniqueItems: true }), ".properties.city.uniqueItems", true],
  "arguments that are no object": [{ ...object_of({}), type: "string" }, ".type", true],
  "what nothing satisfies": [{ ...object_of(false), required: ["city", "kind"] }, ".properties.city", true],
  "what never comes to an end": [{ ...object_of({ $ref: "#" }), required: ["city", "kind"] }, ".properties.city", true],
  "more members than there may be": [{ ...object_of({}), minProperties: 3, maxProperties: 2 }, "", false],
};
const usable = object_of({ enum: ["Paris"] });

const parts_of = ({ content }) => content.filter(({ type }) => type === "tool_use").map(({ name, input }) => ({ name, arguments: JSON.stringify(input) }));
const named_calls = (calls) => (calls ?? []).map(({ function: call }) => call);
const say = "Call a function for Paris.";
const grammar = (definition) => ({ type: "grammar", grammar: { syntax: "lark", definition } });
// For each dialect: where to, its form of a function, of a custom tool, of each choice and of a schema, and the calls of its answer.
const dialects = {
  chat: { route: "/v1/chat/completions", asked: { messages: [{ role: "user", content: say }], max_tokens: 60, parallel_tool_calls: false },
    tool: (name, parameters, strict) => ({ type: "function", function: { name, parameters, strict } }), path: "function.parameters",
    custom: (name, definition) => ({ type: "custom", custom: { name, format: grammar(definition) } }), formatPath: "custom.format",
    choice: { auto: "auto", required: "required", named: { type: "function", function: { name: "bad" } }, other: { type: "function", function: { name: "good" } } },
    format: (schema, strict) => ({ response_format: { type: "json_schema", json_schema: { name: "a", strict, schema } } }), schemaPath: "response_format.json_schema.schema",
    cut: ({ choices: [{ finish_reason }] }) => finish_reason === "length", text: ({ choices: [{ message }] }) => message.content,
    calls: ({ choices: [{ message }] }) => (message.tool_calls ?? []).map((call) => call.custom ?? call.function) },
  responses: { route: "/v1/responses", asked: { input: say, max_output_tokens: 60, store: false, parallel_tool_calls: false },
    tool: (name, parameters, strict) => ({ type: "function", name, parameters, strict }), path: "parameters",
    custom: (name, definition) => ({ type: "custom", name, format: { type: "grammar", syntax: "lark", definition } }), formatPath: "format",
    choice: { auto: "auto", required: "required", named: { type: "function", name: "bad" }, other: { type: "function", name: "good" } },
    format: (schema, strict) => ({ text: { format: { type: "json_schema", name: "a", strict, schema } } }), schemaPath: "text.format.schema",
    cut: ({ status }) => status === "incomplete", text: ({ output }) => output.find(({ type }) => type === "message")?.content[0].text,
    calls: ({ output }) => output.filter(({ type }) => type.endsWith("_call")) },
  messages: { route: "/v1/messages", asked: { messages: [{ role: "user", content: say }], max_tokens: 60 }, path: "input_schema",
    tool: (name, input_schema, strict) => ({ name, input_schema, strict }),
    choice: { auto: { type: "auto" }, required: { type: "any" }, named: { type: "tool", name: "bad" }, other: { type: "tool", name: "good" } },
    format: (schema, strict) => strict ? null : { output_config: { format: { type: "json_schema", schema } } }, schemaPath: "output_config.format.schema",
    cut: ({ stop_reason }) => stop_reason === "max_tokens", text: ({ content }) => content.find(({ type }) => type === "text")?.text, calls: parts_of },
  ollama: { route: "/api/chat", asked: { messages: [{ role: "user", content: say }], stream: false, options: { num_predict: 60 } }, path: "function.parameters",
    tool: (name, parameters, strict) => ({ type: "function", function: { name, parameters, strict } }), choice: { auto: undefined },
    format: (format, strict) => strict ? null : { format }, schemaPath: "format", cut: ({ done_reason }) => done_reason === "length",
    text: ({ message }) => message.content, calls: ({ message }) => named_calls(message.tool_calls).map(({ name, arguments: given }) => ({ name, arguments: JSON.stringify(given) })) },
};

async function ask(dialect, fields) {
  const response = await post(url + dialect.route, { model: "default", seed: 7, ...dialect.asked, ...fields });
  return { status: response.status, ignored: response.headers.get("x-braid-schema-ignored"), answer: await response.json() };
}

// Arguments are an object, and where they are bound they satisfy the rest of their schema.
function check_calls(dialect, answer, bound, what) {
  const calls = dialect.calls(answer);
  for (const [i, call] of calls.entries()) {
    if (dialect.cut(answer) && i === calls.length - 1) continue;
    if (call.input !== undefined && call.arguments === undefined) continue;
    const given = JSON.parse(call.arguments);
    assert.ok(given !== null && typeof given === "object" && !Array.isArray(given), what);
    if (bound[call.name]) assert.equal(given.kind, 1, `${what}: ${call.arguments}`);
    if (call.name === "good" && bound.good) assert.ok([undefined, "Paris"].includes(given.city), `${what}: ${call.arguments}`);
  }
  return calls.length;
}

for (const [name, dialect] of Object.entries(dialects)) {
  test(`${name}: of several tools only what cannot be honoured of one is lost`, async () => {
    const { tool, custom, choice, path: place } = dialect;
    const neighbours = { none: [], plain: [tool("good", usable)], strict: [tool("good", usable, true)], ...(custom && { custom: [custom("good", "start: /[a-z]{1,9}/")] }) };
    let called = 0;
    for (const [fault, [schema, where, rest]] of Object.entries(unusable))
      for (const [neighbour, others] of Object.entries(neighbours))
        for (const mode of [...Object.keys(choice), "schema"]) {
          if (mode === "other" && neighbour !== "plain") continue;
          const what = `${name}, ${fault} beside ${neighbour}, ${mode}`;
          const path = `tools[0].${place}${where}`;
          const fields = { ...(mode === "schema" ? dialect.format({ type: "object", properties: { kind }, required: ["kind"] }, false) : { tool_choice: choice[mode] }) };
          const lenient = await ask(dialect, { ...fields, tools: [tool("bad", schema), ...others] });
          assert.equal(lenient.status, 200, `${what}: ${JSON.stringify(lenient.answer)}`);
          const free = mode === "auto" && ["none", "plain"].includes(neighbour);  // no schema binds
          assert.equal(lenient.ignored, free || mode === "other" ? null : path, what);
          const calls = check_calls(dialect, lenient.answer, { bad: rest && !free, good: !free }, what);
          if (["required", "named", "other"].includes(mode)) assert.ok(calls > 0 || dialect.cut(lenient.answer), what);
          called += calls;
          if (mode === "other" || (mode !== "required" && neighbour !== "none")) continue;
          const strict = await ask(dialect, { ...fields, tools: [tool("bad", schema, true), ...others] });
          assert.equal(strict.status, 400, what);
          assert.ok(JSON.stringify(strict.answer).includes(path), `${what}: ${JSON.stringify(strict.answer)}`);
        }
    assert.ok(called > (choice.required ? 50 : 3), `${called} calls`);
  });

  test(`${name}: of a schema only what cannot be honoured is lost`, async () => {
    for (const [fault, [schema, where, rest]] of Object.entries(unusable)) {
      if (where === ".type") continue;  // an answer may be a text
      const lenient = await ask(dialect, dialect.format(schema, false));
      assert.equal(lenient.status, 200, `${fault}: ${JSON.stringify(lenient.answer)}`);
      assert.equal(lenient.ignored, dialect.schemaPath + where, fault);
      if (!dialect.cut(lenient.answer)) assert.ok(!rest || JSON.parse(dialect.text(lenient.answer)).kind === 1, fault);
      const format = dialect.format(schema, true);
      if (format === null) continue;
      const strict = await ask(dialect, format);
      assert.equal(strict.status, 400, fault);
      assert.ok(JSON.stringify(strict.answer).includes(dialect.schemaPath + where), JSON.stringify(strict.answer));
    }
  });

  if (dialect.custom) test(`${name}: of several custom tools only the form that cannot be honoured is lost`, async () => {
    for (const definition of ["start: missing", "start: a\na: b \"x\"\nb: a \"y\"", "start: \"x\" start", "start: /(?<=a)b/"])
      for (const tool_choice of ["auto", "required"])
        for (const extra of [[], [dialect.tool("plain", usable)]]) {
          const tools = [dialect.custom("bad", definition), dialect.custom("good", "start: \"yes\" | \"no\""), ...extra];
          const { status, ignored, answer } = await ask(dialect, { tools, tool_choice });
          assert.equal(status, 200, JSON.stringify(answer));
          assert.equal(ignored, `tools[0].${dialect.formatPath}`);
          for (const call of dialect.calls(answer)) if (call.name === "good" && !dialect.cut(answer)) assert.match(call.input, /^(yes|no)$/);
        }
  });
}
