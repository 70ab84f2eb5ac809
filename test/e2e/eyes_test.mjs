// The demo model's eyes: a trained tower and adapter, so that answers about pictures are right ones. The pictures are drawn here, by other
// code than what the tower learned from.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import path from "node:path";
import { after, before, test } from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import { Ollama } from "ollama";
import OpenAI from "openai";
import { braid, serve, sourceFolder, temporaryFolder } from "./support/processes.mjs";
import { frees_everything, post } from "./support/client.mjs";
import { draw, invent, numbers_of, places } from "./support/pictures.mjs";

const eyes = path.join(sourceFolder, "models/demo-eyes");
const cleanups = [];
let server;

before(async () => {
  const suite = { after: (cleanup) => cleanups.push(cleanup) };
  server = await serve(suite, ["--mmproj", path.join(eyes, "mmproj.gguf"), "--lora", `eyes=${eyes}`, "--kv-memory", "64M"]);
});
after(async () => { for (const cleanup of cleanups.reverse()) await cleanup(); });

const shown = (file) => ({ type: "image_url", image_url: { url: `data:image/png;base64,${file.toString("base64")}` } });
async function answer_to(content) {
  const response = await post(`${server.url}/v1/chat/completions`, { model: "eyes", temperature: 0, max_tokens: 60, messages: [{ role: "user", content }] });
  assert.equal(response.status, 200);
  return (await response.json()).choices[0].message.content;
}

const one = (name) => (/^[aeiou]/.test(name) ? "an " : "a ") + name;
const numbers = ["no", "one", "two", "three", "four"];
const listed = (names) => (names.length === 1 ? names[0] : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`);

// Questions about a picture, about one of its things above all, with the answer that the patterns of its training give.
function questions_about(things, { shape, colour, cell }) {
  const name = `${colour} ${shape}`;
  return {
    all: ["What is in this picture?", `I see ${listed(things.map((thing) => one(`${thing.colour} ${thing.shape}`)))}.`],
    count: ["How many shapes are there?", things.length === 1 ? "There is one shape." : `There are ${numbers[things.length]} shapes.`],
    colour: [`What colour is the ${shape}?`, `The ${shape} is ${colour}.`],
    shape: [`Which shape is ${colour}?`, `The ${shape} is ${colour}.`],
    place: [`Where is the ${name}?`, `The ${name} is ${places[cell]}.`],
    being: [`Is there ${one(name)}?`, `Yes, there is ${one(name)}.`],
    ground: ["What colour is the background?", "The background is white."],
  };
}

// Where these bounds were set, 166 of 168 answers were right.
test("answers about pictures that nobody has seen before are right", async () => {
  const random = numbers_of(2026);
  const asked = Array.from({ length: 16 }, (_, i) => {
    const things = invent(random, 1 + i % 4);
    const picture = shown(draw({ things, side: 112 + 28 * (i % 4) }));
    return Object.entries(questions_about(things, things[Math.floor(random() * things.length)])).map(([kind, [question, right]]) =>
      ({ kind, right, content: i % 2 ? [picture, { type: "text", text: question }] : [{ type: "text", text: question }, picture] }));
  }).flat();
  const said = await Promise.all(asked.map(({ content }) => answer_to(content)));
  const right = {};
  asked.forEach(({ kind, right: expected }, i) => { right[kind] = (right[kind] ?? 0) + (said[i] === expected); });
  const wrong = asked.flatMap(({ right: expected }, i) => (said[i] === expected ? [] : [`${said[i]} (${expected})`]));
  assert.ok(wrong.length <= 11, `at least 90 % of 112: ${wrong.join("; ")}`);
  for (const [kind, count] of Object.entries(right)) assert.ok(count >= 12, `${kind}: ${count} of 16`);
  await frees_everything(server.url);
});

const two = [{ shape: "circle", colour: "red", cell: 3 }, { shape: "square", colour: "blue", cell: 5 }];
const star = [{ shape: "star", colour: "green", cell: 4 }];

test("the same picture is answered alike in every dialect, by its SDK", async () => {
  const data = draw({ things: two }).toString("base64");
  const url = `data:image/png;base64,${data}`;
  const question = "What colour is the square?";
  const openai = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: "none", maxRetries: 0 });
  const chat = await openai.chat.completions.create({ model: "eyes", temperature: 0,
    messages: [{ role: "user", content: [{ type: "image_url", image_url: { url } }, { type: "text", text: question }] }] });
  const response = await openai.responses.create({ model: "eyes", temperature: 0,
    input: [{ role: "user", content: [{ type: "input_image", image_url: url }, { type: "input_text", text: question }] }] });
  const message = await new Anthropic({ baseURL: server.url, apiKey: "none", maxRetries: 0 }).messages.create({ model: "eyes", temperature: 0, max_tokens: 40,
    messages: [{ role: "user", content: [{ type: "image", source: { type: "base64", media_type: "image/png", data } }, { type: "text", text: question }] }] });
  const ollama = await new Ollama({ host: server.url }).chat({ model: "eyes", options: { temperature: 0 },
    messages: [{ role: "user", content: question, images: [data] }] });
  const right = "The square is blue.";
  assert.deepEqual([chat.choices[0].message.content, response.output_text, message.content[0].text, ollama.message.content], [right, right, right, right]);
});

test("several pictures in one message and over the turns of a chat are told apart", async () => {
  const [first, second] = [two, star].map((things) => shown(draw({ things })));
  assert.equal(await answer_to([first, second, { type: "text", text: "In the second picture: What shape is it?" }]), "It is a star.");
  const response = await post(`${server.url}/v1/chat/completions`, { model: "eyes", temperature: 0, messages: [
    { role: "user", content: [first, { type: "text", text: "What do you see?" }] }, { role: "assistant", content: "I see a red circle and a blue square." },
    { role: "user", content: [second, { type: "text", text: "What do you see?" }] }] });
  assert.equal((await response.json()).choices[0].message.content, "I see a green star.");
});

test("without the adapter the model answers texts as it always did", async () => {
  const said = async (model) => {
    const response = await post(`${server.url}/v1/chat/completions`, { model, temperature: 0, messages: [{ role: "user", content: "What is 17 + 25?" }] });
    return (await response.json()).choices[0].message.content;
  };
  assert.equal(await said("braid-demo"), "17 + 25 = 42.");
  assert.equal(await said("eyes"), "17 + 25 = 42.");
});

test("braid run shows the picture whose path is in the words", async (t) => {
  const file = path.join(temporaryFolder(t), "picture.png");
  writeFileSync(file, draw({ things: two }));
  const ran = await braid(t, ["run", "--host", server.url, "--temperature", "0", "eyes", `What is in this picture? ${file}`]);
  assert.equal(ran.code, 0, ran.stderr);
  assert.match(ran.stdout, /I see a red circle and a blue square\./);
});
