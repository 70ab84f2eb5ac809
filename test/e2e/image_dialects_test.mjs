// Images in every dialect of one server, by the official SDKs where there are any: the same picture is the same prompt.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import http from "node:http";
import path from "node:path";
import { after, before, test } from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import { Ollama } from "ollama";
import OpenAI from "openai";
import { braid, serve, sourceFolder, temporaryFolder } from "./support/processes.mjs";
import { frees_everything, post } from "./support/client.mjs";

const folder = path.join(sourceFolder, "test/model/reference/images");
const pictures = path.join(sourceFolder, "test/images/pictures");
const file = path.join(folder, "picture.png");
const bytes = readFileSync(file);
const data = bytes.toString("base64");
const url = `data:image/png;base64,${data}`;

// Roles and contents of any form, and what models that see are told of an image.
const template =
  "{%- for message in messages -%}{{ message.role }}: {% if message.content is string -%}{{ message.content }}{%- else -%}" +
  "{%- for part in message.content -%}{%- if part.type == 'image' -%}<image>{%- else -%}{{ part.text }}{%- endif -%}{%- endfor -%}{%- endif -%}; " +
  "{%- endfor -%}assistant:";

const cleanups = [];
let server, outside, asked;

before(async () => {
  const suite = { after: (cleanup) => cleanups.push(cleanup) };
  const file = path.join(temporaryFolder(suite), "template.jinja");
  writeFileSync(file, template);
  outside = http.createServer((request, response) => {
    asked.push(request.url);
    if (request.url === "/picture.png") return response.end(bytes);
    if (request.url === "/moved") return response.writeHead(302, { location: "/picture.png" }).end();
    if (request.url === "/inside") return response.writeHead(302, { location: "http://169.254.169.254/" }).end();
    response.writeHead(404).end();
  });
  await new Promise((resolve) => outside.listen(0, "127.0.0.1", resolve));
  suite.after(() => outside.close());
  server = await serve(suite, [path.join(folder, "llava"), "--alias", "owl", "--chat-template", file, "--ctx", "512", "--kv-memory", "64M",
    "--image-host", `127.0.0.1:${outside.address().port}`, "--image-private-hosts"]);
});
after(async () => { for (const cleanup of cleanups.reverse()) await cleanup(); });

const address = (name) => `http://127.0.0.1:${outside.address().port}/${name}`;
const openai = () => new OpenAI({ baseURL: `${server.url}/v1`, apiKey: "none", maxRetries: 0 });
const anthropic = () => new Anthropic({ baseURL: server.url, apiKey: "none", maxRetries: 0 });

// Tokens of a prompt that is "user: what" and the picture.
async function tokens_of_chat(image_url) {
  const answer = await openai().chat.completions.create({
    model: "owl", max_tokens: 4, temperature: 0,
    messages: [{ role: "user", content: [{ type: "text", text: "what" }, { type: "image_url", image_url: { url: image_url } }] }],
  });
  return answer.usage.prompt_tokens;
}

test("every dialect's form of an image is the same prompt", async () => {
  const expected = await tokens_of_chat(url);
  const blind = await openai().chat.completions.create({ model: "owl", max_tokens: 1, messages: [{ role: "user", content: "what" }] });
  assert.ok(expected > blind.usage.prompt_tokens + 8, "an image is many tokens");
  const answer = await openai().responses.create({
    model: "owl", max_output_tokens: 4, temperature: 0,
    input: [{ role: "user", content: [{ type: "input_text", text: "what" }, { type: "input_image", image_url: url, detail: "auto" }] }],
  });
  assert.equal(answer.usage.input_tokens, expected);
  assert.equal(answer.usage.input_tokens_details.cached_tokens, expected - 1, "its blocks are those of the chat");
  const message = { role: "user", content: [{ type: "text", text: "what" }, { type: "image", source: { type: "base64", media_type: "image/png", data } }] };
  const said = await anthropic().messages.create({ model: "owl", max_tokens: 4, temperature: 0, messages: [message] });
  assert.equal(said.usage.input_tokens + (said.usage.cache_read_input_tokens ?? 0), expected);
  const counted = await anthropic().messages.countTokens({ model: "owl", messages: [message] });
  assert.equal(counted.input_tokens, expected);
  const tokens = await (await post(`${server.url}/tokenize`, { messages: [{ role: "user", content: [{ type: "text", text: "what" },
    { type: "image_url", image_url: { url } }] }] })).json();
  assert.equal(tokens.count, expected);
});

test("Ollama's chat and prompt show images in front of the text", async () => {
  const ollama = new Ollama({ host: server.url });
  const chat = await ollama.chat({ model: "owl", messages: [{ role: "user", content: "what", images: [new Uint8Array(bytes)] }], options: { num_predict: 4 } });
  const prompt = await ollama.generate({ model: "owl", prompt: "what", images: [data], options: { num_predict: 4 } });
  assert.ok(chat.prompt_eval_count > 12);
  assert.equal(prompt.prompt_eval_count, chat.prompt_eval_count);
  const shown = await ollama.show({ model: "owl" });
  assert.ok(shown.capabilities.includes("vision"));
});

test("what a tool shows is seen, in a conversation that goes on", async () => {
  const messages = [
    { role: "user", content: "look" },
    { role: "assistant", content: [{ type: "tool_use", id: "t1", name: "screenshot", input: {} }] },
    { role: "user", content: [{ type: "tool_result", tool_use_id: "t1", content: [{ type: "image", source: { type: "base64", media_type: "image/png", data } }] }] },
  ];
  const tools = [{ name: "screenshot", description: "the screen", input_schema: { type: "object", properties: {} } }];
  const blind = structuredClone(messages);
  blind[2].content[0].content = "nothing";
  const count = async (list) => (await anthropic().messages.countTokens({ model: "owl", messages: list, tools })).input_tokens;
  assert.ok(await count(messages) > await count(blind) + 8);
  const said = await anthropic().messages.create({ model: "owl", max_tokens: 4, messages, tools, tool_choice: { type: "none" } });
  assert.ok(said.usage.output_tokens > 0);
});

test("an address is asked where its host is allowed, redirections as well", async () => {
  asked = [];
  const expected = await tokens_of_chat(url);
  assert.equal(await tokens_of_chat(address("picture.png")), expected);
  assert.equal(await tokens_of_chat(address("moved")), expected);
  assert.deepEqual(asked, ["/picture.png", "/moved", "/picture.png"]);
  for (const [name, sentence] of [["none", /the answer was 404/], ["inside", /169\.254\.169\.254:80 are not allowed/]])
    await assert.rejects(tokens_of_chat(address(name)), (error) => error.status === 400 && sentence.test(error.message));
  await assert.rejects(tokens_of_chat("http://localhost:1/picture.png"), (error) => error.status === 400 && /not allowed/.test(error.message));
});

test("all kinds of files are read, and broken ones are refused by their place", async () => {
  for (const name of ["photo.jpg", "cmyk.jpg", "turned6.jpg", "rgb16.png", "alpha.png", "lossy.webp", "film.gif", "palette.bmp"]) {
    const type = name.endsWith("jpg") ? "jpeg" : path.extname(name).slice(1);
    assert.ok(await tokens_of_chat(`data:image/${type};base64,${readFileSync(path.join(pictures, name)).toString("base64")}`) > 8, name);
  }
  const cut = readFileSync(path.join(pictures, "photo.jpg")).subarray(0, 9000).toString("base64");
  await assert.rejects(tokens_of_chat(`data:image/jpeg;base64,${cut}`),
    (error) => error.status === 400 && error.param === "messages[0].content[1].image_url.url" && /broken JPEG/.test(error.message));
  await frees_everything(server.url);
});

test("braid run shows the file whose path is in the words, and a model of text says that it sees nothing", async (t) => {
  const shown = await braid(t, ["run", "--host", server.url, "owl", `what is ${file} ?`, "--max-tokens", "4"]);
  assert.equal(shown.code, 0, shown.stderr);
  const here = await braid(t, ["run", path.join(folder, "llava"), `what is ${file} ?`, "--max-tokens", "4", "--temperature", "0", "--kv-memory", "16M"]);
  assert.equal(here.code, 0, here.stderr);
  const unseen = await braid(t, ["run", path.join(folder, "llava"), "what is ?", "--max-tokens", "4", "--temperature", "0", "--kv-memory", "16M"]);
  assert.notEqual(here.stdout, unseen.stdout, "what is shown counts");
  const blind = await serve(t, ["--kv-memory", "64M"]);
  const refused = await braid(t, ["run", "--host", blind.url, "braid-demo", `what is ${file} ?`]);
  assert.equal(refused.code, 2);
  assert.match(refused.stderr, /reads text alone/);
});

test("of two models the one of text names the one that sees", async (t) => {
  const both = await serve(t, [path.join(sourceFolder, "models/demo-q8_0.gguf"), path.join(folder, "llava"), "--kv-memory", "64M"]);
  const response = await post(`${both.url}/v1/chat/completions`, { model: "demo-q8_0", messages: [{ role: "user", content: [{ type: "image_url", image_url: { url } }] }] });
  assert.equal(response.status, 400);
  assert.match((await response.json()).error.message, /reads text alone; one that sees is here: llava/);
});
