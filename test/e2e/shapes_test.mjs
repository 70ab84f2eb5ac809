// Every answer and every event has the members, of the types, that the provider whose API it is publishes (shapes/): all dialects,
// streamed and whole, errors too.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import { after, before, test } from "node:test";
import Ajv2020 from "ajv/dist/2020.js";
import { post } from "./support/client.mjs";
import { serve, serveScript } from "./support/processes.mjs";

const ajv = new Ajv2020({ strict: false, allErrors: true });

// Published schemas by the names of their roots: roots.chat(answer, "what it is") fails with what it lacks.
function shapes(name) {
  const { roots, $defs } = JSON.parse(readFileSync(path.join(import.meta.dirname, `shapes/${name}.json`), "utf8"));
  ajv.addSchema({ $defs }, name);
  return Object.fromEntries(Object.entries(roots).map(([key, definition]) => {
    const validate = ajv.compile({ $ref: `${name}#/$defs/${definition}` });
    return [key, (value, what) => assert.ok(validate(value), `${what}: ${ajv.errorsText(validate.errors)}\n${JSON.stringify(value)}`)];
  }));
}

const [openai, anthropic, ollama] = ["openai", "anthropic", "ollama"].map(shapes);

const cleanups = [];
const t = { after: (cleanup) => cleanups.push(cleanup) };
let scripted, model;

const say = (name, args) => `<tool_call>\n${JSON.stringify({ name, arguments: args })}\n</tool_call>`;

before(async () => {
  model = await serve(t);
  scripted = await serveScript(t, [
    { when: "say two", say: `<think>Two of them.</think>I look.${say("look", { at: "it" })}${say("note", { input: "two\nlines" })}` },
    { when: "say hello", say: "<think>A greeting.</think>Hello!" },
  ]);
});
after(async () => { for (const cleanup of cleanups) await cleanup(); });

const ask = (server, route, body, headers = {}) =>
  post(server.url + route, body, { headers: { "Content-Type": "application/json", ...headers } });

// What of `say two` and `say hello` a dialect is asked with, and parameters of its own. `server` is who answers.
const schema = { type: "object", properties: { at: { type: "string" } }, required: ["at"], additionalProperties: false };
const user = (content) => [{ role: "user", content }];
const chatTools = [{ type: "function", function: { name: "look", description: "Looks", parameters: schema, strict: true } },
  { type: "function", function: { name: "note", parameters: { type: "object", properties: { input: { type: "string" } } } } }];
const messageTools = chatTools.map(({ function: { name, parameters } }) => ({ name, input_schema: parameters }));
const responseTools = [{ type: "function", name: "look", description: "Looks", parameters: schema, strict: true }, { type: "custom", name: "note" }];

const chats = {
  "an answer with reasoning": { messages: user("say hello") },
  "calls": { messages: user("say two"), tools: chatTools },
  "choices with log-probabilities": { messages: user("say hello"), n: 2, logprobs: true, top_logprobs: 2 },
  "what is used": { messages: user("say hello"), stream_options: { include_usage: true } },
};
const modelChats = {
  "an answer cut off": { messages: user("Tell me a story."), max_tokens: 3, logprobs: true, top_logprobs: 3 },
  "a forced call": { messages: user("The weather in Paris?"), tools: chatTools, tool_choice: "required", max_tokens: 100, temperature: 0 },
};

// The data of server-sent events; the stream's end is checked by its caller.
async function sent(response) {
  assert.equal(response.status, 200);
  assert.match(response.headers.get("content-type"), /^text\/event-stream/);
  const blocks = (await response.text()).trimEnd().split("\n\n").filter((block) => !block.startsWith(":"));
  return blocks.map((block) => {
    const [, name, data] = block.match(/^(?:event: (\S+)\n)?data: (.*)$/);
    return { name, data: data === "[DONE]" ? data : JSON.parse(data) };
  });
}

async function whole(response) {
  assert.equal(response.status, 200, await response.clone().text());
  return response.json();
}

function eachOf(cases, server, check) {
  return Promise.all(Object.entries(cases).map(([what, body]) => check(server(), what, { model: "braid-demo", ...body })));
}

async function openaiAnswers(route, shape, chunk, cases, server) {
  await eachOf(cases, server, async (one, what, body) => {
    const { stream_options, ...plain } = body;
    shape(await whole(await ask(one, route, plain)), what);
    const events = await sent(await ask(one, route, { ...body, stream: true }));
    assert.equal(events.pop().data, "[DONE]");
    for (const { data } of events) chunk(data, `${what}, streamed`);
  });
}

test("chat completions", async () => {
  await openaiAnswers("/v1/chat/completions", openai.chat, openai.chat_chunk, chats, () => scripted);
  await openaiAnswers("/v1/chat/completions", openai.chat, openai.chat_chunk, modelChats, () => model);
});

test("completions", async () => {
  const cases = {
    "a text": { prompt: "say hello" }, "two choices of two prompts": { prompt: ["say hello", "say two"], n: 2 },
    "an echo": { prompt: "say hello", echo: true }, "what is used": { prompt: "say hello", stream_options: { include_usage: true } },
  };
  await openaiAnswers("/v1/completions", openai.completion, openai.completion, cases, () => scripted);
  const scored = { "log-probabilities": { prompt: "Once upon", max_tokens: 4, logprobs: 2, echo: true } };
  await openaiAnswers("/v1/completions", openai.completion, openai.completion, scored, () => model);
});

const responses = {
  "an answer with reasoning": { input: "say hello" },
  "sealed reasoning, not kept": { input: "say hello", store: false, include: ["reasoning.encrypted_content"] },
  "calls": { input: "say two", tools: responseTools, parallel_tool_calls: true },
  "all that is repeated": { input: user("say hello"), instructions: "Be brief.", metadata: { a: "b" }, temperature: 0.5, top_p: 0.5, user: "u",
    tools: responseTools, tool_choice: { type: "function", name: "look" }, max_output_tokens: 100, truncation: "auto", prompt_cache_key: "k",
    reasoning: { effort: "low" }, text: { format: { type: "text" }, verbosity: "low" }, top_logprobs: 2, safety_identifier: "s" },
};
const modelResponses = {
  "an answer cut off": { input: "Tell me a story.", max_output_tokens: 3, include: ["message.output_text.logprobs"], top_logprobs: 2 },
  "a schema": { input: "Name a colour.", max_output_tokens: 60, text: { format: { type: "json_schema", name: "colour", strict: true,
    schema: { type: "object", properties: { name: { type: "string", maxLength: 10 } }, required: ["name"], additionalProperties: false } } } },
};

async function responseEvents(response, what) {
  const events = await sent(response);
  for (const { name, data } of events) {
    assert.equal(name, data.type);
    assert.ok(openai[data.type], `${what}: the API has no event ${data.type}`);
    openai[data.type](data, `${what}, streamed`);
  }
  return events.map(({ data }) => data);
}

test("responses", async () => {
  for (const [cases, server] of [[responses, () => scripted], [modelResponses, () => model]])
    await eachOf(cases, server, async (one, what, body) => {
      const answer = await whole(await ask(one, "/v1/responses", body));
      openai.response(answer, what);
      if (body.store !== false) {
        openai.response(await whole(await fetch(`${one.url}/v1/responses/${answer.id}`)), `${what}, kept`);
        openai.input_items(await whole(await fetch(`${one.url}/v1/responses/${answer.id}/input_items`)), `${what}, its input`);
      }
      await responseEvents(await ask(one, "/v1/responses", { ...body, stream: true }), what);
    });
});

test("a response that fails while it is streamed", async () => {
  const { tokens } = await (await ask(model, "/tokenize", { content: "7" })).json();
  const body = { input: "hello", guided_regex: "[a-c]7", logit_bias: tokens.map((id) => [id, false]), stream: true };
  const events = await responseEvents(await ask(model, "/v1/responses", body), "a failure");
  assert.ok(events.some(({ type }) => type === "response.failed"));
  const chat = await sent(await ask(model, "/v1/chat/completions", { ...body, messages: user("hello") }));
  openai.refusal(chat.at(-1).data, "a failure of a chat");
  const message = await sent(await ask(model, "/v1/messages", { ...body, messages: user("hello"), max_tokens: 10 }));
  assert.equal(message.at(-1).name, "error");
  anthropic.refusal(message.at(-1).data, "a failure of a message");
});

test("messages", async () => {
  const thinking = { type: "enabled", budget_tokens: 1024 };
  const cases = {
    "an answer": { messages: user("say hello"), max_tokens: 2000 },
    "thinking": { messages: user("say hello"), max_tokens: 2000, thinking },
    "calls": { messages: user("say two"), max_tokens: 2000, tools: messageTools, thinking },
    "a stop sequence": { messages: user("say hello"), max_tokens: 2000, stop_sequences: ["!"] },
  };
  const cut = { "an answer cut off": { messages: user("Tell me a story."), max_tokens: 3 } };
  for (const [some, server] of [[cases, () => scripted], [cut, () => model]])
    await eachOf(some, server, async (one, what, body) => {
      anthropic.message(await whole(await ask(one, "/v1/messages", body)), what);
      const events = await sent(await ask(one, "/v1/messages", { ...body, stream: true }));
      assert.equal(events.at(-1).name, "message_stop");
      for (const { name, data } of events) {
        assert.equal(name, data.type);
        if (name !== "ping") anthropic.event(data, `${what}, streamed`);
      }
    });
  anthropic.tokens(await whole(await ask(model, "/v1/messages/count_tokens", { model: "braid-demo", messages: user("hello") })), "a count");
  const list = await whole(await fetch(`${model.url}/v1/models`, { headers: { "anthropic-version": "2023-06-01" } }));
  for (const one of list.data) anthropic.model(one, "a model");
  anthropic.model(await whole(await fetch(`${model.url}/v1/models/braid-demo`, { headers: { "anthropic-version": "2023-06-01" } })), "a model");
});

test("models and embeddings", async () => {
  openai.models(await whole(await fetch(`${model.url}/v1/models`)), "models");
  openai.model(await whole(await fetch(`${model.url}/v1/models/braid-demo`)), "a model");
  const embeddings = await serve(t, ["--pooling", "mean"]);
  openai.embeddings(await whole(await ask(embeddings, "/v1/embeddings", { model: "braid-demo", input: ["a", "b"] })), "embeddings");
});

test("Ollama's lines", async () => {
  const cases = {
    "/api/chat": [{ messages: user("say hello") }, { messages: user("say hello"), think: true, logprobs: true, top_logprobs: 2 },
      { messages: user("say two"), tools: chatTools }],
    "/api/generate": [{ prompt: "say hello" }, { prompt: "say hello", think: true }],
  };
  for (const [route, bodies] of Object.entries(cases)) {
    const [last, line] = route === "/api/chat" ? [ollama.chat, ollama.chat_line] : [ollama.generate, ollama.generate_line];
    for (const body of bodies) {
      last(await whole(await ask(scripted, route, { model: "braid-demo", ...body, stream: false })), route);
      const lines = (await (await ask(scripted, route, { model: "braid-demo", ...body })).text()).trimEnd().split("\n").map((one) => JSON.parse(one));
      last(lines.at(-1), `${route}, the last line`);
      for (const one of lines) line(one, `${route}, a line`);
    }
  }
  ollama.tags(await whole(await fetch(`${model.url}/api/tags`)), "tags");
  ollama.show(await whole(await ask(model, "/api/show", { model: "braid-demo" })), "show");
});

test("refusals", async () => {
  const long = user("a word ".repeat(3000));
  const routes = [
    [openai.refusal, {}, [["/v1/chat/completions", [{ messages: 5 }, { messages: [] , model: "another" }, { messages: long }]], ["/v1/completions", [{ prompt: {} }]],
      ["/v1/responses", [{ input: 5 }, { input: long }, { input: "a", previous_response_id: "resp_none" }]], ["/v1/embeddings", [{ input: {} }]], ["/v1/none", [{}]]]],
    [anthropic.refusal, { "anthropic-version": "2023-06-01" }, [["/v1/messages", [{ messages: 5 }, { messages: user("a") }, { messages: long, max_tokens: 5 },
      { model: "another", messages: user("a"), max_tokens: 5 }]], ["/v1/messages/count_tokens", [{ messages: 5 }]], ["/v1/none", [{}]]]],
    [ollama.refusal, {}, [["/api/chat", [{ messages: 5 }, { model: "another", messages: user("a") }, { messages: long }]],
      ["/api/generate", [{ prompt: 5 }]], ["/api/show", [{ model: "another" }]]]],
  ];
  for (const [refusal, headers, places] of routes) {
    for (const [route, bodies] of places) {
      for (const body of [...bodies, [], "no object"]) {
        const response = await ask(model, route, body, headers);
        assert.ok(response.status >= 400 && response.status < 500, `${route} answers ${JSON.stringify(body).slice(0, 80)} by ${response.status}`);
        refusal(await response.json(), `${route} refuses`);
      }
    }
  }
  for (const [path, headers, refusal] of [["/v1/responses/resp_none", {}, openai.refusal], ["/v1/models/none", {}, openai.refusal],
    ["/v1/models/none", { "anthropic-version": "2023-06-01" }, anthropic.refusal], ["/v1/chat/completions", {}, openai.refusal],
    ["/v1/messages", { "anthropic-version": "2023-06-01" }, anthropic.refusal]]) {
    const response = await fetch(model.url + path, { headers });
    assert.ok(response.status === 404 || response.status === 405, `${path}: ${response.status}`);
    refusal(await response.json(), `GET ${path}`);
  }
});
