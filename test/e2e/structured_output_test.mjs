// Constrained answers hold to their constraints, whatever is sampled, and beside plain ones in one batch.
import assert from "node:assert/strict";
import { test } from "node:test";
import { serve } from "./support/processes.mjs";
import { post } from "./support/client.mjs";

const person = {
  type: "object", additionalProperties: false, required: ["name", "age", "tags"],
  properties: {
    name: { type: "string", minLength: 1, maxLength: 20 }, age: { type: "integer", minimum: 1, maximum: 120 },
    tags: { type: "array", items: { enum: ["red", "green"] }, minItems: 2, maxItems: 3 },
  },
};
const json_schema = { name: "person", strict: true, schema: person };

async function ask(server, body) {
  const messages = [{ role: "user", content: "Describe a person named Ada, 36, as JSON." }];
  const response = await post(`${server.url}/v1/chat/completions`, { messages, max_tokens: 150, temperature: 1.5, ...body });
  return { status: response.status, body: await response.json() };
}

async function answer(server, body) {
  const { status, body: { choices, error } } = await ask(server, body);
  assert.equal(status, 200, JSON.stringify(error));
  return choices[0];
}

function check(choice) {
  assert.equal(choice.finish_reason, "stop");
  const { name, age, tags, ...more } = JSON.parse(choice.message.content);
  assert.deepEqual(more, {});
  assert.ok([...name].length >= 1 && [...name].length <= 20, name);
  assert.ok(Number.isInteger(age) && age >= 1 && age <= 120, `${age}`);
  assert.ok(tags.length >= 2 && tags.length <= 3 && tags.every((tag) => tag === "red" || tag === "green"), `${tags}`);
}

test("structured output", async (t) => {
  const server = await serve(t, []);

  await t.test("constrained and plain rows share a batch", async () => {
    const plain = { seed: 5, max_tokens: 40 };
    const alone = await answer(server, plain);
    const seeds = [1, 2, 3, 4, 5, 6, 7, 8];
    const constrained = seeds.map((seed) => answer(server, { seed, response_format: { type: "json_schema", json_schema } }));
    const beside = await answer(server, plain);
    assert.deepEqual(beside.message, alone.message);
    for (const choice of await Promise.all(constrained)) check(choice);
  });

  await t.test("regular expressions, choices and grammars", async () => {
    for (const seed of [1, 2, 3]) {
      const regex = await answer(server, { seed, guided_regex: "(yes|no), [a-z ]{5,20}\\." });
      assert.match(regex.message.content, /^(yes|no), [a-z ]{5,20}\.$/);
      const choice = await answer(server, { seed, guided_choice: ["left", "leftmost", "right"] });
      assert.ok(["left", "leftmost", "right"].includes(choice.message.content));
      const grammar = await answer(server, { seed, grammar: 'root ::= "[" [1-9]{1,3} ("," [1-9]{1,3}){2} "]"' });
      assert.equal(JSON.parse(grammar.message.content).length, 3);
    }
  });

  await t.test("what cannot be honoured is refused with its path where the schema is strict", async () => {
    const schema = { type: "object", properties: { x: { type: "array", items: { type: "integer" }, uniqueItems: true } } };
    const format = (strict) => ({ type: "json_schema", json_schema: { name: "x", strict, schema } });
    const { status, body } = await ask(server, { response_format: format(true) });
    assert.equal(status, 400);
    assert.equal(body.error.param, "response_format.json_schema.schema.properties.x.uniqueItems");
    const lenient = await post(`${server.url}/v1/chat/completions`,
      { model: "braid-demo", messages: [{ role: "user", content: "a" }], max_tokens: 1, response_format: format(false) });
    assert.equal(lenient.status, 200);
    assert.equal(lenient.headers.get("x-braid-schema-ignored"), "response_format.json_schema.schema.properties.x.uniqueItems");
    const many = { type: "object", properties: Object.fromEntries(Array.from({ length: 300 }, (_, i) => [`x${i}`, schema.properties.x])) };
    const long = await post(`${server.url}/v1/chat/completions`, { model: "braid-demo", messages: [{ role: "user", content: "a" }],
      max_tokens: 1, response_format: { type: "json_schema", json_schema: { name: "x", schema: many } } });
    const told = long.headers.get("x-braid-schema-ignored");
    assert.ok(told.length <= 1024 && told.length > 900, told);  // whole names
  });

  await t.test("paths of what is left out, or refused, are those of the request's own form", async () => {
    const schema = { type: "object", properties: { x: { type: "array", items: { type: "integer" }, uniqueItems: true } } };
    const said = [{ role: "user", content: "a" }];
    const tool = { name: "f", description: "d" };
    const forms = [
      ["/v1/responses", (strict) => ({ input: "a", max_output_tokens: 1, text: { format: { type: "json_schema", name: "x", strict, schema } } }), "text.format.schema"],
      ["/v1/responses", (strict) => ({ input: "a", max_output_tokens: 1, tool_choice: "required", tools: [{ type: "function", ...tool, strict, parameters: schema }] }), "tools[0].parameters"],
      ["/v1/messages", (strict) => ({ messages: said, max_tokens: 1, tool_choice: { type: "any" }, tools: [{ ...tool, strict, input_schema: schema }] }), "tools[0].input_schema"],
      ["/v1/chat/completions", (strict) => ({ messages: said, max_tokens: 1, tool_choice: "required", tools: [{ type: "function", function: { ...tool, strict, parameters: schema } }] }), "tools[0].function.parameters"],
    ];
    for (const [path, body, place] of forms) {
      const lenient = await post(server.url + path, body(false));
      assert.equal(lenient.status, 200, `${path} ${place}: ${await lenient.text()}`);
      assert.equal(lenient.headers.get("x-braid-schema-ignored"), `${place}.properties.x.uniqueItems`, path);
      const strict = await post(server.url + path, body(true));
      assert.equal(strict.status, 400, `${path} ${place}`);
      assert.match((await strict.json()).error.message, new RegExp(`${place.replaceAll(/[.[\]]/g, "\\$&")}\\.properties\\.x\\.uniqueItems`), path);
    }
    const format = { type: "json_schema", schema };
    const message = await post(`${server.url}/v1/messages`, { messages: said, max_tokens: 1, output_config: { format } });
    assert.equal(message.headers.get("x-braid-schema-ignored"), "output_config.format.schema.properties.x.uniqueItems");
    const lines = await post(`${server.url}/api/chat`, { messages: said, stream: false, options: { num_predict: 1 }, format: schema });
    assert.equal(lines.headers.get("x-braid-schema-ignored"), "format.properties.x.uniqueItems");
  });

  await t.test("bans that leave none of the tokens that a constraint allows are the request's own fault", async () => {
    const { tokens } = await (await post(`${server.url}/tokenize`, { content: "7" })).json();
    const body = { guided_regex: "[a-c]7", logit_bias: tokens.map((id) => [id, false]) };
    const whole = await ask(server, body);
    assert.equal(whole.status, 400, JSON.stringify(whole.body));
    assert.equal(whole.body.error.type, "invalid_request_error");
    const messages = [{ role: "user", content: "hello" }];
    const stream = await (await post(`${server.url}/v1/chat/completions`, { messages, stream: true, ...body })).text();
    assert.match(stream, /data: {"error":{"message":"no token may come next[^\n]*"type":"invalid_request_error"/);
    const response = await (await post(`${server.url}/v1/responses`, { input: "hello", stream: true, ...body })).text();
    assert.match(response, /"status":"failed"[^\n]*"error":{"code":"invalid_prompt"/);
  });
});
