// Schemas as zod 4 and Pydantic 2 write them (test/grammar/libraries), through every dialect: as the form of an answer and as a
// function's arguments, strict and not. What is answered validates; what answers the SDKs' helpers for zod, zod itself reads.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import { after, before, test } from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import { betaZodTool } from "@anthropic-ai/sdk/helpers/beta/zod";
import { zodOutputFormat } from "@anthropic-ai/sdk/helpers/zod";
import Ajv from "ajv";
import Ajv2020 from "ajv/dist/2020.js";
import OpenAI from "openai";
import { zodFunction, zodResponseFormat, zodResponsesFunction, zodTextFormat } from "openai/helpers/zod";
import { z } from "zod";
import { post } from "./support/client.mjs";
import { longModel, serve, sourceFolder } from "./support/processes.mjs";

const share = Number(process.env.SCHEMA_SHARE ?? 3);  // each schema goes through one in so many dialects
const cleanups = [];
let url;

before(async () => {
  const t = { after: (cleanup) => cleanups.push(cleanup) };
  url = (await serve(t, [longModel(t), "--alias", "braid-demo"])).url;
});
after(async () => { for (const cleanup of cleanups) await cleanup(); });

// Objects only: a function has no other arguments.
function schemas_of(library) {
  const text = readFileSync(path.join(sourceFolder, `test/grammar/libraries/${library}.jsonl`), "utf8");
  return text.trimEnd().split("\n").map((line) => JSON.parse(line)).filter(({ name }) => name.startsWith("object of"));
}

const content = "Answer with an example.";
const messages = [{ role: "user", content }];
const max_tokens = 120;
const call_of = ({ choices: [{ message, finish_reason }] }) => ({ text: message.tool_calls?.[0].function.arguments, cut: finish_reason === "length" });
const function_of = (parameters, strict) => ({ name: "f", parameters, strict });
const tools_of = (schema) => [{ type: "function", function: function_of(schema, true) }];
const wish = [{ role: "user", content: "Call the function f with an example." }];
// A call, or text that only binds where there is a format.
const chosen_of = (binds) => ({ choices: [{ message, finish_reason }] }) =>
  ({ text: message.tool_calls?.[0].function.arguments ?? (binds ? message.content : null), cut: finish_reason === "length" });

// For each dialect: where to, what is asked, and what of the answer is to be valid.
const dialects = {
  "a chat's format": ["/v1/chat/completions", (schema, strict) => ({ messages, max_tokens, response_format: { type: "json_schema", json_schema: { name: "a", strict, schema } } }),
    ({ choices: [{ message, finish_reason }] }) => ({ text: message.content, cut: finish_reason === "length" })],
  "a chat's forced call": ["/v1/chat/completions", (schema, strict) =>
    ({ messages, max_tokens, tools: [{ type: "function", function: function_of(schema, strict) }], tool_choice: "required", parallel_tool_calls: false }), call_of],
  "a completion": ["/v1/completions", (schema) => ({ prompt: content, max_tokens, guided_json: schema }),
    ({ choices: [{ text, finish_reason }] }) => ({ text, cut: finish_reason === "length" })],
  "a response's format": ["/v1/responses", (schema, strict) => ({ input: content, max_output_tokens: max_tokens, store: false, text: { format: { type: "json_schema", name: "a", strict, schema } } }),
    ({ output: [{ content: [{ text }] }], status }) => ({ text, cut: status === "incomplete" })],
  "a response's forced call": ["/v1/responses", (schema, strict) =>
    ({ input: content, max_output_tokens: max_tokens, store: false, tools: [{ type: "function", ...function_of(schema, strict) }], tool_choice: "required", parallel_tool_calls: false }),
    ({ output, status }) => ({ text: output[0].arguments, cut: status === "incomplete" })],
  "a message's format": ["/v1/messages", (schema) => ({ messages, max_tokens, output_config: { format: { type: "json_schema", schema } } }),
    ({ content: [{ text }], stop_reason }) => ({ text, cut: stop_reason === "max_tokens" })],
  "a message's forced call": ["/v1/messages", (input_schema, strict) =>
    ({ messages, max_tokens, tools: [{ name: "f", input_schema, strict }], tool_choice: { type: "tool", name: "f", disable_parallel_tool_use: true } }),
    ({ content: [{ input }], stop_reason }) => ({ text: JSON.stringify(input), cut: stop_reason === "max_tokens" })],
  "Ollama's format": ["/api/chat", (format) => ({ messages, format, stream: false, options: { num_predict: max_tokens } }),
    ({ message, done_reason }) => ({ text: message.content, cut: done_reason === "length" })],
  "a call that a chat chooses": ["/v1/chat/completions", (schema, strict) => ({ messages: wish, max_tokens, tools: tools_of(schema, strict) }), chosen_of(false)],
  "a format beside a tool": ["/v1/chat/completions", (schema, strict) =>
    ({ messages, max_tokens, tools: tools_of(schema, strict), response_format: { type: "json_schema", json_schema: { name: "a", strict: true, schema } } }), chosen_of(true)],
  "Ollama's generation": ["/api/generate", (format) => ({ prompt: content, format, stream: false, options: { num_predict: max_tokens } }),
    ({ response: text, done_reason }) => ({ text, cut: done_reason === "length" })],
  "llama-server's schema": ["/completion", (json_schema) => ({ prompt: content, n_predict: max_tokens, json_schema }),
    ({ content: text, stop_type }) => ({ text, cut: stop_type === "limit" })],
  "llama-server's gap": ["/infill", (json_schema) => ({ input_prefix: content, input_suffix: ".", n_predict: max_tokens, json_schema }),
    ({ content: text, stop_type }) => ({ text, cut: stop_type === "limit" })],
};

// Where nobody asks for it, a call that is not forced is bound to be an object and no more.
const always_strict = new Set(["a call that a chat chooses", "a format beside a tool"]);

function validator_of(schema) {
  const draft7 = JSON.stringify(schema).includes('"items":[') || schema.$schema?.includes("draft-07");
  const ajv = new (draft7 ? Ajv : Ajv2020)({ strict: false, validateFormats: false, unicodeRegExp: true });
  const validate = ajv.compile(schema);
  return (text, what) => assert.ok(validate(JSON.parse(text)), `${what}: ${ajv.errorsText(validate.errors)}: ${text} under ${JSON.stringify(schema)}`);
}

for (const library of ["zod4", "pydantic"]) {
  test(`${library}'s schemas bind every dialect's answers`, async () => {
    const ended = Object.fromEntries(Object.keys(dialects).map((name) => [name, 0]));
    const ask = async ([dialect, [route, body_of, read]], { name, schema }, strict, seed) => {
      const what = `${dialect}, ${library}, ${name}, strict ${strict}`;
      const response = await post(url + route, { model: "braid-demo", seed, temperature: 1, ...body_of(schema, strict) });
      const answer = await response.json();
      const binds = strict && body_of.length > 1;  // some dialects have no such word
      if (response.status === 400 && binds) return assert.match(JSON.stringify(answer), /uniqueItems/, what);
      assert.equal(response.status, 200, `${what}: ${JSON.stringify(answer)}`);
      if (response.headers.has("x-braid-schema-ignored")) return assert.ok(!binds, what);
      const { text, cut } = read(answer);
      if (cut) return;
      if (text !== null) validator_of(schema)(text, what);
      ++ended[dialect];
    };
    const schemas = schemas_of(library);
    const asked = schemas.flatMap((one, i) => Object.entries(dialects).map((dialect, j) => [dialect, one, (i + j) % 2 === 0 || always_strict.has(dialect[0]), i, (i + j) % share]))
      .filter((one) => one.pop() === 0);
    const next = async () => { while (asked.length > 0) await ask(...asked.pop()); };
    await Promise.all(Array.from({ length: 16 }, next));
    const least = schemas.length / share / (share > 3 ? 4 : 2);  // few answers say little of how many come to an end
    for (const [dialect, count] of Object.entries(ended)) assert.ok(count > least, `${dialect}: ${count} answers came to an end`);
  });
}

const place = z.strictObject({
  city: z.string().min(1).max(20), mail: z.email().max(30), when: z.iso.date(), id: z.uuid(), kind: z.enum(["home", "work"]),
  floor: z.int().min(-2).max(40), share: z.number().min(0).max(1), code: z.string().regex(/^[A-Z]{2}-\d{3}$/), open: z.boolean(),
  tags: z.array(z.literal(["a", "b"])).max(3), note: z.string().max(10).nullable(), pair: z.object({ x: z.int32(), y: z.int32() }),
  either: z.union([z.int().max(9), z.literal("none")]),
});
const model = "braid-demo";

test("zod reads what is answered to the helpers of OpenAI's SDK", async () => {
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "none", maxRetries: 0 });
  const asked = { model, messages, temperature: 0, max_tokens: 600 };
  const chat = await client.chat.completions.parse({ ...asked, response_format: zodResponseFormat(place, "place") });
  place.parse(chat.choices[0].message.parsed);
  const call = await client.chat.completions.parse({ ...asked, tools: [zodFunction({ name: "visit", parameters: place })], tool_choice: "required" });
  place.parse(call.choices[0].message.tool_calls[0].function.parsed_arguments);
  const input = { model, input: content, temperature: 0, max_output_tokens: 600 };
  const response = await client.responses.parse({ ...input, text: { format: zodTextFormat(place, "place") } });
  place.parse(response.output_parsed);
  const called = await client.responses.parse({ ...input, tools: [zodResponsesFunction({ name: "visit", parameters: place })], tool_choice: "required" });
  place.parse(called.output[0].parsed_arguments);
});

// Its helper for formats tells most restrictions to the model in words alone, so that they cannot bind.
const plain = z.strictObject({ city: z.string(), when: z.iso.date(), id: z.guid(), kind: z.enum(["home", "work"]), open: z.boolean(), note: z.string().nullable() });

test("zod reads what is answered to the helpers of Anthropic's SDK", async () => {
  const client = new Anthropic({ baseURL: url, apiKey: "none", maxRetries: 0 });
  const asked = { model, messages, temperature: 0, max_tokens: 600 };
  const message = await client.messages.parse({ ...asked, output_config: { format: zodOutputFormat(plain) } });
  plain.parse(message.parsed_output);
  const { run, parse, ...visit } = betaZodTool({ name: "visit", description: "Visits", inputSchema: place, run: () => "done" });
  const called = await client.messages.create({ ...asked, tools: [visit], tool_choice: { type: "tool", name: "visit" } });
  place.parse(called.content[0].input);
});
