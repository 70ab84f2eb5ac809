// What an image costs braid and llama-server, in turns, each with two threads: a question about one less a text of as many tokens, in wall and in
// processor time. Prints Markdown.
//
//     python3 perf/model/make_random_tower.py /tmp/tower.gguf --type q8_0
//     node perf/compare/images.mjs --braid build/release/braid --peer LLAMA_CPP/bin/llama-server models/demo-q8_0.gguf /tmp/tower.gguf [ROUNDS]
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createServer } from "node:net";
import { parseArgs } from "node:util";
import { post } from "../../test/e2e/support/client.mjs";
import { draw, invent, numbers_of } from "../../test/e2e/support/pictures.mjs";

const { values, positionals } = parseArgs({ allowPositionals: true, options: { braid: { type: "string" }, peer: { type: "string" } } });
const [model, tower, rounds = "6"] = positionals;
const random = numbers_of(7);

const free_port = () => new Promise((resolve) => {
  const probe = createServer().listen(0, "127.0.0.1", () => {
    const { port } = probe.address();
    probe.close(() => resolve(port));
  });
});

async function start(name, program, options) {
  const port = await free_port();
  const child = spawn(program, [...options, "--port", String(port)], { stdio: ["ignore", "pipe", "pipe"] });
  const server = { name, child, url: `http://127.0.0.1:${port}`, log: "" };
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => { server.log += chunk; });
  const end = Date.now() + 120_000;
  for (;;) {
    const health = await fetch(`${server.url}/health`).catch(() => null);
    if (health?.status === 200) return server;
    if (Date.now() > end || child.exitCode !== null) throw new Error(`${name} did not start:\n${server.log.slice(-2000)}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

const processor_seconds = (child) => {
  const fields = readFileSync(`/proc/${child.pid}/stat`, "utf8").split(") ")[1].split(" ");
  return (Number(fields[11]) + Number(fields[12])) / 100;
};

async function ask(server, content) {
  const [begin, processor] = [performance.now(), processor_seconds(server.child)];
  const response = await post(`${server.url}/v1/chat/completions`, { messages: [{ role: "user", content }], max_tokens: 1, temperature: 0 });
  if (response.status !== 200) throw new Error(`${server.name}: ${await response.text()}`);
  const { usage } = await response.json();
  const wall = (performance.now() - begin) / 1000;
  await new Promise((resolve) => setTimeout(resolve, 50));  // until what follows an answer is counted, too
  return { wall, processor: processor_seconds(server.child) - processor, tokens: usage.prompt_tokens };
}

// No two prompts begin alike.
async function look(server, url, round) {
  const image = await ask(server, [{ type: "text", text: `${round}: what is this?` }, { type: "image_url", image_url: { url } }]);
  const text = await ask(server, `${round + 1000} ${"word ".repeat(image.tokens)}`);
  return { image: image.wall - text.wall, wall: image.wall, processor: image.processor - text.processor };
}

const median = (list) => list.toSorted((a, b) => a - b)[Math.floor(list.length / 2)];
const servers = [
  await start("braid", values.braid, ["serve", model, "--mmproj", tower, "--threads", "2", "--kv-memory", "256M"]),
  await start("llama-server", values.peer, ["-m", model, "--mmproj", tower, "-t", "2", "-tb", "2", "-c", "4096", "-np", "1", "--no-webui"]),
];
const figures = new Map(servers.map(({ name }) => [name, []]));
for (let round = 0; round <= Number(rounds); ++round) {
  const url = `data:image/png;base64,${draw({ things: invent(random, 4), side: 336 }).toString("base64")}`;
  for (const server of servers) {
    const figure = await look(server, url, round);
    if (round > 0) figures.get(server.name).push(figure);
  }
}
for (const { child } of servers) child.kill();
console.log("| | braid | llama-server | its time by braid's, and of each pair |\n|---|---|---|---|");
for (const [what, key] of [["the image, s", "image"], ["the whole request, s", "wall"], ["the image, s of processors", "processor"]]) {
  const [own, peer] = servers.map(({ name }) => figures.get(name).map((figure) => figure[key]));
  console.log(`| ${what} | ${median(own).toFixed(3)} | ${median(peer).toFixed(3)} | ${(median(peer) / median(own)).toFixed(2)} ` +
    `(pairs ${peer.map((p, i) => (p / own[i]).toFixed(2)).join(", ")}) |`);
}
