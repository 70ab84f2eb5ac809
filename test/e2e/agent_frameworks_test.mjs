// What agents are written with: Vercel's AI SDK and LangChain, against the embedded model.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { HumanMessage, ToolMessage } from "@langchain/core/messages";
import { ChatOpenAI } from "@langchain/openai";
import { generateText, jsonSchema, stepCountIs, streamText, tool } from "ai";
import { serve } from "./support/processes.mjs";

const cleanups = [];
let server, provider;

before(async () => {
  server = await serve({ after: (cleanup) => cleanups.push(cleanup) });
  provider = createOpenAICompatible({ name: "braid", baseURL: `${server.url}/v1`, apiKey: "none", includeUsage: true });
});
after(async () => { for (const cleanup of cleanups) await cleanup(); });

const location = { type: "object", properties: { location: { type: "string", description: "The city" } }, required: ["location"] };
const description = "Get the current weather in a given location";
const question = "What is the weather in Paris?";

test("AI SDK: a text, streamed and not, with its usage", async () => {
  const options = { model: provider("braid-demo"), prompt: "What is 17 + 25?", temperature: 0, maxRetries: 0 };
  const whole = await generateText(options);
  assert.equal(whole.text, "17 + 25 = 42.");
  assert.equal(whole.finishReason, "stop");
  const stream = streamText(options);
  let text = "";
  for await (const piece of stream.textStream) text += piece;
  assert.equal(text, whole.text);
  assert.equal((await stream.usage).outputTokens, whole.usage.outputTokens);
});

test("AI SDK: an agent loop of two steps", async () => {
  const get_weather = tool({
    description,
    inputSchema: jsonSchema(location),
    execute: async ({ location: city }) => ({ city, temperature: 21, condition: "sunny" }),
  });
  const result = await generateText(
    { model: provider("braid-demo"), prompt: question, tools: { get_weather }, stopWhen: stepCountIs(3), temperature: 0, maxRetries: 0 });
  assert.equal(result.steps.length, 2);
  assert.deepEqual(result.steps[0].toolCalls[0].input, { location: "Paris" });
  assert.match(result.text, /21 degrees/);
});

test("AI SDK: an abort ends the stream", async () => {
  const controller = new AbortController();
  const stream = streamText(
    { model: provider("braid-demo"), prompt: "Tell me a story.", abortSignal: controller.signal, maxRetries: 0, onError: () => {} });
  let pieces = 0;
  for await (const part of stream.fullStream) {
    if (part.type === "text-delta" && ++pieces === 3) controller.abort();
  }
  assert.ok(pieces >= 3);
});

const chat = (options = {}) => new ChatOpenAI(
  { model: "braid-demo", apiKey: "none", temperature: 0, maxRetries: 0, configuration: { baseURL: `${server.url}/v1` }, ...options });

test("LangChain: an answer, streamed and not", async () => {
  const whole = await chat().invoke("What is 17 + 25?");
  assert.equal(whole.content, "17 + 25 = 42.");
  assert.ok(whole.usage_metadata.output_tokens > 0);
  let text = "";
  for await (const chunk of await chat().stream("What is 17 + 25?")) text += chunk.content;
  assert.equal(text, whole.content);
});

test("LangChain: an agent loop of two steps", async () => {
  const model = chat().bindTools([{ type: "function", function: { name: "get_weather", description, parameters: location } }]);
  const asked = [new HumanMessage(question)];
  const first = await model.invoke(asked);
  assert.equal(first.tool_calls.length, 1);
  assert.deepEqual(first.tool_calls[0].args, { location: "Paris" });
  const result = new ToolMessage({ content: '{"temperature": 21, "condition": "sunny"}', tool_call_id: first.tool_calls[0].id });
  assert.match((await model.invoke([...asked, first, result])).content, /21 degrees/);
});

test("LangChain: structured output", async () => {
  const schema = { title: "sum", type: "object", properties: { sum: { type: "integer" } }, required: ["sum"], additionalProperties: false };
  const result = await chat().withStructuredOutput(schema, { method: "jsonSchema", strict: true }).invoke("What is 17 + 25? Answer in JSON.");
  assert.equal(typeof result.sum, "number");
});
