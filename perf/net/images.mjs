// What images cost, with the demo model behind a tower of CLIP-L's size: an image's encoding, the first token of a second question about it,
// and the longest wait for a next token while others' images are encoded.
//
//     python3 perf/model/make_random_tower.py /tmp/tower.gguf --type q8_0
//     BRAID_BINARY=build/release/braid node perf/net/images.mjs /tmp/tower.gguf [options of braid serve]
import { readFileSync } from "node:fs";
import { metric, post } from "../../test/e2e/support/client.mjs";
import { draw, invent, numbers_of } from "../../test/e2e/support/pictures.mjs";
import { serve } from "../../test/e2e/support/processes.mjs";

const cleanups = [];
const suite = { after: (cleanup) => cleanups.push(cleanup) };
const [tower, ...options] = process.argv.slice(2);
const server = await serve(suite, ["--mmproj", tower, "--kv-memory", "256M", ...options]);
const random = numbers_of(5);
const picture = () => `data:image/png;base64,${draw({ things: invent(random, 4), side: 336 }).toString("base64")}`;
const processor_seconds = () => {
  const fields = readFileSync(`/proc/${server.child.pid}/stat`, "utf8").split(") ")[1].split(" ");
  return (Number(fields[11]) + Number(fields[12])) / 100;
};
const median = (values) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)];

async function ask(content, max_tokens = 1) {
  const begin = performance.now();
  const response = await post(`${server.url}/v1/chat/completions`, { messages: [{ role: "user", content }], max_tokens, temperature: 0, ignore_eos: true });
  const answer = await response.json();
  if (response.status !== 200) throw new Error(JSON.stringify(answer));
  return { ms: performance.now() - begin, usage: answer.usage };
}
const about = (url, question) => [{ type: "image_url", image_url: { url } }, { type: "text", text: question }];

async function encoding() {
  await ask(about(picture(), "What is this?"));
  const [images, seconds, processor] = [await metric(server.url, "braid_images_encoded_total"),
    await metric(server.url, "braid_image_encode_seconds_total"), processor_seconds()];
  for (let i = 0; i < 5; ++i) await ask(about(picture(), "What is this?"));  // drawing them is not the server's time
  const encoded = (await metric(server.url, "braid_images_encoded_total")) - images;
  const spent = (await metric(server.url, "braid_image_encode_seconds_total")) - seconds;
  console.log(`encoding: ${(spent / encoded).toFixed(3)} s of the strand, ${((processor_seconds() - processor) / encoded).toFixed(3)} s of processors with all else`);
}

// Both have the same tokens to compute: what follows the image, or a text of as many tokens.
async function second_question() {
  const url = picture();
  const first = await ask(about(url, "What is this?"));
  const text = "word ".repeat(first.usage.prompt_tokens);
  await ask(text);
  const [images, texts] = [[], []];
  for (let i = 0; i < 15; ++i) {
    images.push((await ask(about(url, `What is this? It is number ${i}.`))).ms);
    texts.push((await ask(`${text} What is this? It is number ${i}.`)).ms);
  }
  console.log(`second question: first token after ${median(images).toFixed(1)} ms, of a text alone after ${median(texts).toFixed(1)} ms`);
}

// Pictures are drawn before: that would hold this program, and what it measures.
async function gaps(images) {
  const pictures = Array.from({ length: images }, picture);
  const streams = Array.from({ length: 16 }, async (_, i) => {
    const response = await post(`${server.url}/v1/chat/completions`, { messages: [{ role: "user", content: `Tell me story number ${i}.` }],
      max_tokens: 250, temperature: 0, ignore_eos: true, stream: true, cache_salt: `${images} ${i}` });
    const times = [];
    for await (const chunk of response.body) if (chunk.length > 0) times.push(performance.now());
    return times.slice(1).map((time, at) => time - times[at]).slice(2);
  });
  await new Promise((resolve) => setTimeout(resolve, 300));
  const asked = pictures.map((url) => ask(about(url, "What is this?")));
  const all = (await Promise.all(streams)).flat().sort((a, b) => a - b);
  await Promise.all(asked);
  console.log(`16 streams beside ${images} images: gaps of ${all[Math.floor(all.length / 2)].toFixed(1)} ms by the median, ` +
    `${all[Math.floor(all.length * 0.99)].toFixed(1)} at 99 %, ${all.at(-1).toFixed(1)} at most`);
}

await encoding();
await second_question();
await gaps(0);
await gaps(8);
await gaps(0);
await gaps(8);
for (const cleanup of cleanups.reverse()) await cleanup();
