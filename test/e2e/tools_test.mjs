// Tools and reasoning with the official OpenAI SDK on the embedded model, which calls functions in Qwen's syntax.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import OpenAI from "openai";
import { serve } from "./support/processes.mjs";

const cleanups = [];
let client;

before(async () => {
  const server = await serve({ after: (cleanup) => cleanups.push(cleanup) });
  client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: "none", maxRetries: 0 });
});
after(async () => { for (const cleanup of cleanups) await cleanup(); });

const weather = {
  type: "function",
  function: {
    name: "get_weather",
    description: "Get the current weather in a given location",
    parameters: {
      type: "object",
      properties: {
        location: { type: "string", description: "The city and state, e.g. San Francisco, CA" },
        unit: { type: "string", enum: ["celsius", "fahrenheit"] },
      },
      required: ["location"],
    },
  },
};
const ask = (content, options = {}) => client.chat.completions.create(
  { model: "braid-demo", messages: [{ role: "user", content }], tools: [weather], temperature: 0, max_tokens: 200, ...options });

test("a two-step agent loop", async () => {
  const messages = [{ role: "user", content: "What is the weather in Paris?" }];
  const body = { model: "braid-demo", tools: [weather], temperature: 0 };
  const first = await client.chat.completions.create({ ...body, messages });
  const [choice] = first.choices;
  assert.equal(choice.finish_reason, "tool_calls");
  assert.equal(choice.message.content, null);
  assert.equal(choice.message.tool_calls.length, 1);
  const [call] = choice.message.tool_calls;
  assert.equal(call.type, "function");
  assert.equal(call.function.name, "get_weather");
  assert.deepEqual(JSON.parse(call.function.arguments), { location: "Paris" });
  messages.push(choice.message, { role: "tool", tool_call_id: call.id, content: '{"temperature": 21, "condition": "sunny"}' });
  const second = await client.chat.completions.create({ ...body, messages });
  assert.equal(second.choices[0].finish_reason, "stop");
  assert.match(second.choices[0].message.content, /21 degrees/);
});

test("the SDK's own tool runner", async () => {
  const asked = [];
  const runner = client.chat.completions.runTools({
    model: "braid-demo",
    temperature: 0,
    messages: [{ role: "user", content: "What is the weather in Paris?" }],
    tools: [{
      type: "function",
      function: {
        ...weather.function,
        parse: JSON.parse,
        function: ({ location }) => { asked.push(location); return '{"temperature": 21, "condition": "sunny"}'; },
      },
    }],
  });
  assert.match(await runner.finalContent(), /21 degrees/);
  assert.deepEqual(asked, ["Paris"]);
});

test("streamed parallel calls", async () => {
  const stream = await ask("What is the weather in Paris and Berlin?",
    { messages: [{ role: "system", content: "You are a helpful assistant." }, { role: "user", content: "What is the weather in Paris and Berlin?" }], stream: true });
  const calls = [];
  let finish = null;
  for await (const { choices: [choice] } of stream) {
    assert.equal(finish, null, "a chunk after the last one");
    finish = choice.finish_reason;
    assert.ok(Object.keys(choice.delta).length > 0 || finish !== null, "an empty delta");
    for (const { index, id, function: part } of choice.delta.tool_calls ?? []) {
      if (id !== undefined) {
        assert.equal(index, calls.length);
        calls.push({ id, name: part.name, arguments: "" });
      }
      calls[index].arguments += part.arguments;
    }
  }
  assert.equal(finish, "tool_calls");
  assert.deepEqual(calls.map((call) => [call.name, JSON.parse(call.arguments)]),
    [["get_weather", { location: "Paris" }], ["get_weather", { location: "Berlin" }]]);
  assert.notEqual(calls[0].id, calls[1].id);
});

test("the SDK's stream helper puts the calls together", async () => {
  const stream = client.chat.completions.stream(
    { model: "braid-demo", messages: [{ role: "user", content: "What is the weather in Paris?" }], tools: [weather], temperature: 0 });
  const final = await stream.finalChatCompletion();
  assert.equal(final.choices[0].message.tool_calls[0].function.name, "get_weather");
});

test("without parallel calls the answer ends with the first", async () => {
  const answer = await ask("What is the weather in Paris and Berlin?", { parallel_tool_calls: false });
  assert.equal(answer.choices[0].message.tool_calls.length, 1);
  assert.equal(answer.choices[0].finish_reason, "tool_calls");
});

test("a call can be required, or one function named", async () => {
  for (const tool_choice of ["required", { type: "function", function: { name: "get_weather" } }]) {
    const answer = await ask("Hello! What is your name?", { tool_choice, parallel_tool_calls: false });
    assert.equal(answer.choices[0].finish_reason, "tool_calls");
    const [call] = answer.choices[0].message.tool_calls;
    assert.equal(call.function.name, "get_weather");
    assert.equal(typeof JSON.parse(call.function.arguments).location, "string");
  }
});

test("none and an unneeded tool give text", async () => {
  const none = await ask("What is the weather in Paris?", { tool_choice: "none" });
  assert.equal(none.choices[0].message.tool_calls, undefined);
  const unneeded = await ask("Hello! What is your name?");
  assert.equal(unneeded.choices[0].message.content, "My name is Braid.");
  assert.equal(unneeded.choices[0].finish_reason, "stop");
});

test("reasoning is told apart", async () => {
  const messages = [{ role: "system", content: "Think step by step." }, { role: "user", content: "What is 348 + 275?" }];
  const body = { model: "braid-demo", messages, temperature: 0 };
  const { message } = (await client.chat.completions.create(body)).choices[0];
  assert.equal(message.content, "348 + 275 = 623.");
  assert.match(message.reasoning_content, /^Ones: .*623\.$/s);
  let text = "", reasoning = "";
  for await (const { choices: [choice] } of await client.chat.completions.create({ ...body, stream: true })) {
    assert.ok(!choice.delta.reasoning_content || text === "", "reasoning after text");
    text += choice.delta.content ?? "";
    reasoning += choice.delta.reasoning_content ?? "";
  }
  assert.deepEqual([text, reasoning], [message.content, message.reasoning_content]);
});

test("a thinking budget closes the reasoning", async () => {
  const messages = [{ role: "system", content: "Think step by step." }, { role: "user", content: "What is 348 + 275?" }];
  const body = { model: "braid-demo", messages, temperature: 0, max_tokens: 100 };
  const { message: free } = (await client.chat.completions.create(body)).choices[0];
  const { message: ample } = (await client.chat.completions.create({ ...body, thinking_budget: 1000 })).choices[0];
  assert.equal(ample.reasoning_content, free.reasoning_content);
  const { message: short } = (await client.chat.completions.create({ ...body, thinking_budget: 4 })).choices[0];
  assert.ok(short.reasoning_content.length > 0 && short.reasoning_content.length < free.reasoning_content.length);
  assert.ok(free.reasoning_content.startsWith(short.reasoning_content));
  assert.ok(short.content.length > 0, "no answer behind the reasoning");
});

test("a stop string cuts the answer and not the reasoning", async () => {
  const messages = [{ role: "system", content: "Think step by step." }, { role: "user", content: "What is 348 + 275?" }];
  const { message } = (await client.chat.completions.create(
    { model: "braid-demo", messages, temperature: 0, stop: ["623"] })).choices[0];
  assert.match(message.reasoning_content, /623/);
  assert.equal(message.content, "348 + 275 = ");
});

test("what is wrong with tools is a 400 that names the field", async () => {
  const rejects = (options, param) => assert.rejects(ask("Hi", options), (e) => e instanceof OpenAI.BadRequestError && e.param === param);
  await rejects({ tools: [{ type: "function", function: {} }] }, "tools[0].function.name");
  await rejects({ tool_choice: { type: "function", function: { name: "nothing" } } }, "tool_choice");
  await rejects({ functions: [weather.function] }, "functions");
});
