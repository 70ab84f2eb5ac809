// What clients of Ollama send, and what they expect: a table of the facts that Ollama's own client tests check, and of the request shapes of Open
// WebUI, LangChain and the ai package's provider; then the packages of the last two themselves.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { HumanMessage, ToolMessage } from "@langchain/core/messages";
import { ChatOllama, Ollama as LangChainOllama, OllamaEmbeddings } from "@langchain/ollama";
import { embedMany, generateText, jsonSchema, Output, stepCountIs, streamText, tool } from "ai";
import { createOllama } from "ollama-ai-provider-v2";
import { serve } from "./support/processes.mjs";

const cleanups = [];
let server;

before(async () => { server = await serve({ after: (cleanup) => cleanups.push(cleanup) }); });
after(async () => { for (const cleanup of cleanups) await cleanup(); });

const model = "braid-demo";
const question = [{ role: "user", content: "What is 17 + 25?" }];
const exact = { temperature: 0, repeat_penalty: 1 };
const right = "17 + 25 = 42.";

async function send(method, route, body) {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  const answer = await fetch(server.url + route, { method, body: method === "GET" || method === "HEAD" ? undefined : text });
  const said = await answer.text();
  const type = answer.headers.get("content-type") ?? "";
  const lines = said.split("\n").filter((line) => line !== "");
  return { status: answer.status, type, text: said, lines: type.includes("json") ? lines.map((line) => JSON.parse(line)) : [] };
}

const durations = ["total_duration", "load_duration", "prompt_eval_duration", "eval_duration"];
function checkEnd(last, reason = "stop") {
  assert.equal(last.model, model);
  assert.ok(!Number.isNaN(Date.parse(last.created_at)), last.created_at);
  assert.equal(last.done, true);
  assert.equal(last.done_reason, reason);
  if (reason !== "stop") return;
  for (const name of [...durations, "prompt_eval_count", "eval_count"]) assert.ok(Number.isInteger(last[name]) && last[name] >= 0, name);
}

// Of a stream or of one line, the whole message.
function said({ status, lines, text }) {
  assert.equal(status, 200, text);
  assert.ok(lines.slice(0, -1).every((line) => line.done === false), text);
  checkEnd(lines.at(-1));
  return lines.map((line) => line.message?.content ?? line.response).join("");
}

// [what, method, route, body, check]
const ollama = [
  ["the root says who it is", "GET", "/", null, ({ status, text }) => assert.deepEqual([status, text], [200, "Ollama is running"])],
  ["and answers HEAD", "HEAD", "/", null, ({ status }) => assert.equal(status, 200)],
  ["a version", "GET", "/api/version", null, ({ lines: [{ version }] }) => assert.match(version, /^\d+\.\d+\.\d+/)],
  ["lists are in 'models'", "GET", "/api/tags", null, ({ lines: [{ models: [one] }] }) => {
    assert.deepEqual([one.name, one.model], [model, model]);
    assert.match(one.digest, /^[0-9a-f]{64}$/);
    assert.ok(one.size > 0 && !Number.isNaN(Date.parse(one.modified_at)));
    for (const name of ["format", "family", "families", "parameter_size", "quantization_level"]) assert.ok(name in one.details, name);
  }],
  ["what is loaded", "GET", "/api/ps", null, ({ lines: [{ models: [one] }] }) => assert.ok(one.expires_at && "size_vram" in one && one.size > 0)],
  ["no body", "POST", "/api/generate", "", ({ status, lines: [{ error }] }) => assert.ok(status === 400 && typeof error === "string")],
  ["no JSON", "POST", "/api/chat", "{", ({ status, lines: [{ error }] }) => assert.ok(status === 400 && typeof error === "string")],
  ["an unknown model", "POST", "/api/chat", { model: "none", messages: question }, ({ status, lines: [{ error }] }) => assert.ok(status === 404 && /none/.test(error))],
  ["a chat is streamed where nothing is said", "POST", "/api/chat", { model, messages: question, options: exact }, (answer) => {
    assert.match(answer.type, /application\/x-ndjson/);
    assert.ok(answer.lines.length > 2);
    assert.equal(said(answer), right);
  }],
  ["a chat in one", "POST", "/api/chat", { model, messages: question, options: exact, stream: false }, (answer) => {
    assert.match(answer.type, /application\/json/);
    assert.equal(answer.lines.length, 1);
    assert.equal(said(answer), right);
  }],
  ["no message loads", "POST", "/api/chat", { model }, ({ lines: [last] }) => checkEnd(last, "load")],
  ["empty messages load", "POST", "/api/chat", { model, messages: [] }, ({ lines: [last] }) => checkEnd(last, "load")],
  ["an empty prompt loads", "POST", "/api/generate", { model, prompt: "", keep_alive: -1 }, ({ lines: [last] }) => checkEnd(last, "load")],
  ["a prompt and its context", "POST", "/api/generate", { model, prompt: question[0].content, options: exact, stream: false }, (answer) => {
    assert.equal(said(answer), right);
    assert.ok(answer.lines[0].context.length > 5 && answer.lines[0].context.every(Number.isInteger));
  }],
  ["raw has no context", "POST", "/api/generate", { model, prompt: "Once", raw: true, stream: false, options: { num_predict: 2 } }, ({ lines: [last] }) => assert.equal(last.context, undefined)],
  ["raw with a template", "POST", "/api/generate", { model, prompt: "a", raw: true, template: "{{ .Prompt }}" }, ({ status, lines: [{ error }] }) => assert.ok(status === 400 && /raw/.test(error))],
  ["raw with a context", "POST", "/api/generate", { model, prompt: "a", raw: true, context: [1, 2] }, ({ status, lines: [{ error }] }) => assert.ok(status === 400 && /raw/.test(error))],
  ["a suffix that the model has no tokens for", "POST", "/api/generate", { model, prompt: "a", suffix: "b" }, ({ status, lines: [{ error }] }) => assert.ok(status === 400 && /suffix|insert/.test(error))],
  ["a template that does not end", "POST", "/api/generate", { model, prompt: "a", template: "{{ if .Prompt }}", stream: false }, ({ status, lines: [{ error }] }) => assert.ok(status === 400 && /template/.test(error))],
  ["thoughts of no known kind", "POST", "/api/chat", { model, messages: question, think: "sometimes" }, ({ status }) => assert.equal(status, 400)],
  ["a format that is none", "POST", "/api/chat", { model, messages: question, format: "xml" }, ({ status }) => assert.equal(status, 400)],
  ["an object, as 'json' asks for", "POST", "/api/chat", { model, messages: question, format: "json", stream: false, options: { ...exact, num_predict: 60 } }, ({ status, lines: [last] }) => {
    assert.equal(status, 200);
    if (last.done_reason === "stop") assert.equal(typeof JSON.parse(last.message.content), "object");
  }],
  ["embeddings of a text", "POST", "/api/embed", { model, input: "why is the sky blue?" }, ({ lines: [{ embeddings: [one] }] }) =>
    assert.ok(Math.abs(Math.hypot(...one) - 1) < 1e-3)],
  ["of several", "POST", "/api/embed", { model, input: ["one", "two"], truncate: true }, ({ lines: [{ embeddings }] }) => assert.equal(embeddings.length, 2)],
  ["of nothing", "POST", "/api/embed", { model, input: "" }, ({ status, lines: [{ embeddings }] }) => assert.deepEqual([status, embeddings], [200, []])],
  ["of no texts", "POST", "/api/embed", { model, input: [] }, ({ lines: [{ embeddings }] }) => assert.deepEqual(embeddings, [])],
  ["of a number", "POST", "/api/embed", { model, input: 2 }, ({ status, lines: [{ error }] }) => assert.ok(status === 400 && typeof error === "string")],
  ["the older route", "POST", "/api/embeddings", { model, prompt: "a" }, ({ lines: [{ embedding }] }) => assert.ok(embedding.length > 1)],
  ["show by 'model'", "POST", "/api/show", { model }, ({ lines: [shown] }) => {
    for (const name of ["modelfile", "template", "details", "model_info", "capabilities"]) assert.ok(name in shown, name);
  }],
  ["show by the older 'name'", "POST", "/api/show", { name: model }, ({ status }) => assert.equal(status, 200)],
  ["show of none", "POST", "/api/show", { model: "none" }, ({ status, lines: [{ error }] }) => assert.ok(status === 404 && /none/.test(error))],
  ["delete of none", "DELETE", "/api/delete", { model: "none" }, ({ status, lines: [{ error }] }) => assert.ok(status === 404 && /none/.test(error))],
  ["copy of none", "POST", "/api/copy", { source: "none", destination: "other" }, ({ status }) => assert.equal(status, 404)],
  ["create from none downloads nothing", "POST", "/api/create", { model: "x", from: "none", stream: false }, ({ status, lines: [{ error }] }) => assert.ok(status === 404 && /not found/.test(error))],
  ["a blob that is not there", "HEAD", `/api/blobs/sha256:${"0".repeat(64)}`, null, ({ status }) => assert.equal(status, 404)],
  ["a blob of another digest", "POST", `/api/blobs/sha256:${"0".repeat(64)}`, "abc", ({ status }) => assert.equal(status, 400)],
];

const calls = [{ type: "function", function: { name: "get_weather", description: "The weather", parameters: {
  type: "object", properties: { city: { type: ["string", "null"], description: "Where", enum: ["Rome", "Oslo"] } }, required: ["city"] } } }];

// What these send besides, which must not disturb.
const clients = [
  ["Open WebUI, a chat", "POST", "/api/chat", { model, messages: question, stream: true, options: { ...exact, num_ctx: 2048, num_batch: 512, num_keep: 24, num_thread: 2,
    num_gpu: 1, use_mmap: true, use_mlock: false, tfs_z: 1, repeat_last_n: 64, mirostat: 0, mirostat_eta: 0.1, mirostat_tau: 5, stop: ["<|im_end|>"] }, keep_alive: "5m" }, (answer) => assert.equal(said(answer), right)],
  ["Open WebUI, a title", "POST", "/api/chat", { model, messages: question, stream: false, options: exact, format: null, metadata: { task: "title_generation" } }, (answer) => assert.equal(said(answer), right)],
  ["Open WebUI, vectors", "POST", "/api/embed", { model, input: ["a document", "another"], truncate: true }, ({ lines: [{ embeddings }] }) => assert.equal(embeddings.length, 2)],
  ["Open WebUI, its OpenAI side", "POST", "/v1/chat/completions", { model, messages: question, stream: false, temperature: 0, max_tokens: 20 }, ({ lines: [{ choices: [one] }] }) => assert.equal(one.message.content, right)],
  ["Open WebUI, keeping a model", "POST", "/api/generate", { model, keep_alive: "10m" }, ({ lines: [last] }) => checkEnd(last, "load")],
  ["LangChain, a chat with all its options", "POST", "/api/chat", { model, messages: question, stream: true, keep_alive: "5m", options: { ...exact, numa: false, num_ctx: 1024, main_gpu: 0,
    low_vram: false, f16_kv: true, logits_all: false, vocab_only: false, embedding_only: false, penalize_newline: true, seed: 1, top_k: 40, top_p: 0.9, typical_p: 1,
    presence_penalty: 0, frequency_penalty: 0, num_predict: 40, stop: ["###"] } }, (answer) => assert.equal(said(answer), right)],
  ["LangChain, calls and their answers", "POST", "/api/chat", { model, stream: false, tools: calls, options: { ...exact, num_predict: 20 }, messages: [
    { role: "system", content: "Be brief." }, { role: "user", content: "Is it cold in Oslo?" },
    { role: "assistant", content: "", tool_calls: [{ id: "call_1", type: "function", function: { name: "get_weather", arguments: { city: "Oslo" } } }] },
    { role: "tool", content: "-3 degrees", tool_call_id: "call_1" }] }, ({ status, lines: [last], text }) => {
    assert.equal(status, 200, text);
    assert.equal(last.message.role, "assistant");
  }],
  ["LangChain, vectors", "POST", "/api/embed", { model, input: "a query", keep_alive: "5m", options: { num_ctx: 512 } }, ({ lines: [{ embeddings }] }) => assert.equal(embeddings.length, 1)],
  ["ai, a text", "POST", "/api/chat", { format: undefined, model, messages: question, stream: false, tools: undefined, options: { ...exact, num_predict: 40 } }, (answer) => assert.equal(said(answer), right)],
  ["ai, an object", "POST", "/api/chat", { model, messages: question, stream: false, options: exact,
    format: { $schema: "http://json-schema.org/draft-07/schema#", type: "object", properties: { answer: { type: "integer" } }, required: ["answer"], additionalProperties: false } },
  ({ lines: [last] }) => assert.ok(Number.isInteger(JSON.parse(last.message.content).answer))],
  ["ai, thoughts and content in two members", "POST", "/api/chat", { model, messages: [...question, { role: "assistant", content: right, thinking: "easy" }, ...question], stream: true, think: false, options: exact },
    ({ status, lines }) => assert.ok(status === 200 && lines.at(-1).done)],
  ["ai, a list of messages with images that are none", "POST", "/api/chat", { model, messages: [{ ...question[0], images: [] }], stream: false, options: exact }, (answer) => assert.equal(said(answer), right)],
];

for (const [title, table] of [["Ollama's own clients", ollama], ["others", clients]])
  test(`what ${title} send is answered as they expect`, async (t) => {
    for (const [what, method, route, body, check] of table)
      await t.test(what, async () => check(await send(method, route, body)));
  });

// As Go's and JSON's numbers and durations are read: seconds, or with units; negative ones are for ever.
test("how long a model stays is understood in all forms", async () => {
  const expires = async (keep_alive) => {
    const answer = await send("POST", "/api/generate", { model, keep_alive });
    if (answer.status !== 200) return answer.status;
    const { lines: [{ models: [one] }] } = await send("GET", "/api/ps");
    return (new Date(one.expires_at) - Date.now()) / 1000;
  };
  for (const [form, seconds] of [[42, 42], [42.5, 42.5], ["42m", 2520], ["1h30m", 5400], ["300", 300], ["90s", 90]]) {
    const left = await expires(form);
    assert.ok(left <= seconds + 1 && left > seconds - 60, `${form}: ${left}`);
  }
  for (const form of [-1, "-1m", "-1", -3.14]) assert.ok(await expires(form) > 1e9, `${form}`);
  for (const form of ["soon", "", [], "1x"]) assert.equal(await expires(form), 400, JSON.stringify(form));
});

test("a conversation goes on from its context, and a prompt may have a template of its own", async () => {
  const ask = async (body) => (await send("POST", "/api/generate", { model, stream: false, options: exact, ...body })).lines[0];
  const first = await ask({ prompt: "My name is Luna." });
  const alone = await ask({ prompt: "What is my name?" });
  const next = await ask({ prompt: "What is my name?", context: first.context });
  assert.equal(next.prompt_eval_count, first.context.length + alone.prompt_eval_count);
  assert.deepEqual(next.context.slice(0, first.context.length), first.context);
  const template = "{{ if .System }}<|im_start|>system\n{{ .System }}<|im_end|>\n{{ end }}<|im_start|>user\n{{ .Prompt }}<|im_end|>\n<|im_start|>assistant\n{{ .Response }}<|im_end|>\n";
  assert.equal((await ask({ prompt: question[0].content, template })).response, right);
  const jinja = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}<|im_start|>assistant{{ '\\n' }}";  // its last line break would not be written
  assert.equal((await ask({ prompt: question[0].content, template: jinja })).response, right);
  const bare = await ask({ prompt: "x", template: "{{ .Prompt }}" });
  assert.ok(bare.prompt_eval_count < alone.prompt_eval_count);
});

const weather = { description: "Get the current weather in a given location",
  parameters: { type: "object", properties: { location: { type: "string", description: "The city" } }, required: ["location"] } };
const paris = "What is the weather in Paris?";
const sun = { temperature: 21, condition: "sunny" };
const sum = { title: "sum", type: "object", properties: { sum: { type: "integer" } }, required: ["sum"], additionalProperties: false };

test("@langchain/ollama: chats, calls, structured output, prompts and vectors", async (t) => {
  const common = { baseUrl: server.url, model, temperature: 0, repeatPenalty: 1 };
  const chat = new ChatOllama(common);
  await t.test("a chat, streamed and not", async () => {
    const whole = await chat.invoke(question[0].content);
    assert.equal(whole.content, right);
    assert.ok(whole.usage_metadata.input_tokens > 0 && whole.usage_metadata.output_tokens > 0);
    let text = "", pieces = 0;
    for await (const chunk of await chat.stream(question[0].content)) { text += chunk.content; pieces += 1; }
    assert.equal(text, right);
    assert.ok(pieces > 2);
  });
  await t.test("a loop of two steps", async () => {
    const able = chat.bindTools([{ type: "function", function: { name: "get_weather", ...weather } }]);
    const asked = [new HumanMessage(paris)];
    const first = await able.invoke(asked);
    assert.deepEqual(first.tool_calls.map(({ name, args }) => [name, args]), [["get_weather", { location: "Paris" }]]);
    const result = new ToolMessage({ content: JSON.stringify(sun), tool_call_id: first.tool_calls[0].id });
    assert.match((await able.invoke([...asked, first, result])).content, /21 degrees/);
  });
  await t.test("an object of a schema", async () => {
    const answer = await chat.withStructuredOutput(sum, { method: "jsonSchema" }).invoke("What is 17 + 25? Answer in JSON.");
    assert.ok(Number.isInteger(answer.sum));
  });
  await t.test("a prompt", async () => assert.equal(await new LangChainOllama(common).invoke(question[0].content), right));
  await t.test("vectors", async () => {
    const vectors = new OllamaEmbeddings({ baseUrl: server.url, model });
    const [one, other] = await vectors.embedDocuments(["one", "two"]);
    assert.ok(one.length > 1 && one.length === other.length);
    assert.deepEqual(await vectors.embedQuery("one"), one);
  });
  await t.test("an unknown model", async () => assert.rejects(new ChatOllama({ ...common, model: "none", maxRetries: 0 }).invoke("Hello"), /none/));
});

test("ai with ollama-ai-provider-v2: texts, calls, structured output and vectors", async (t) => {
  const ollama = createOllama({ baseURL: `${server.url}/api` });
  const common = { model: ollama(model), temperature: 0, maxRetries: 0, providerOptions: { ollama: { options: { repeat_penalty: 1 } } } };
  await t.test("a text, streamed and not", async () => {
    const whole = await generateText({ ...common, prompt: question[0].content });
    assert.deepEqual([whole.text, whole.finishReason], [right, "stop"]);
    assert.ok(whole.usage.inputTokens > 0 && whole.usage.outputTokens > 0);
    let text = "";
    const stream = streamText({ ...common, prompt: question[0].content });
    for await (const piece of stream.textStream) text += piece;
    assert.equal(text, right);
    assert.equal((await stream.usage).outputTokens, whole.usage.outputTokens);
  });
  await t.test("a loop of two steps", async () => {
    const get_weather = tool({ description: weather.description, inputSchema: jsonSchema(weather.parameters), execute: async () => sun });
    const { steps, text } = await generateText({ ...common, prompt: paris, tools: { get_weather }, stopWhen: stepCountIs(3) });
    assert.deepEqual(steps[0].toolCalls.map(({ toolName, input }) => [toolName, input]), [["get_weather", { location: "Paris" }]]);
    assert.match(text, /21 degrees/);
  });
  await t.test("an object of a schema", async () => {
    const { output } = await generateText({ ...common, prompt: "What is 17 + 25? Answer in JSON.", output: Output.object({ schema: jsonSchema(sum) }) });
    assert.ok(Number.isInteger(output.sum));
  });
  await t.test("vectors", async () => {
    const { embeddings } = await embedMany({ model: ollama.textEmbeddingModel(model), values: ["one", "two"], maxRetries: 0 });
    assert.ok(embeddings.length === 2 && embeddings[0].length > 1);
  });
  await t.test("an unknown model", async () => assert.rejects(generateText({ ...common, model: ollama("none"), prompt: "Hello" }), { statusCode: 404 }));
});
