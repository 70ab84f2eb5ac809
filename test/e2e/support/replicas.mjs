// Several servers behind nginx with the shipped file for that, and conversations that are held with them.
import { readFileSync, writeFileSync } from "node:fs";
import net from "node:net";
import path from "node:path";
import { post } from "./client.mjs";
import { freePort, Process, sourceFolder, temporaryFolder } from "./processes.mjs";

const accepts = (port) => new Promise((resolve) => {
  const socket = net.connect(port, "127.0.0.1");
  socket.on("connect", () => { socket.destroy(); resolve(true); });
  socket.on("error", () => resolve(false));
});

// `server` lines of an upstream in the shipped file become one for each port; the rest of such a line stays.
const with_servers = (text, ports) => text
  .replace(/^ *server 127\.0\.0\.1:8002 .*\n/gm, "")
  .replace(/^( *server 127\.0\.0\.1:)8001( .*)$/gm, (_, before, after) => ports.map((port) => before + port + after).join("\n"));

// nginx with deploy/nginx/braid-upstreams.conf before servers at these ports, without TLS. `edit` may change the text. Returns its URL.
export async function balance(t, ports, edit = (text) => text) {
  const folder = temporaryFolder(t);
  const port = await freePort();
  const shipped = readFileSync(path.join(sourceFolder, "deploy/nginx/braid-upstreams.conf"), "utf8");
  const site = edit(with_servers(shipped, ports)).replace("listen 443 ssl http2;", `listen 127.0.0.1:${port};`).replace(/^ *ssl_certificate.*\n/gm, "");
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((kind) => `${kind}_temp_path ${folder}/${kind};`).join("\n");
  writeFileSync(path.join(folder, "nginx.conf"),
    `daemon off;\nmaster_process off;\npid ${folder}/pid;\nerror_log stderr;\nevents { worker_connections 1024; }\nhttp {\naccess_log off;\n${temporary}\n${site}\n}\n`);
  const program = new Process(t, process.env.BRAID_NGINX, ["-p", folder, "-c", path.join(folder, "nginx.conf")]);
  while (!(await accepts(port))) {
    if (program.child.exitCode !== null) throw new Error(`nginx ended:\n${program.errors}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return { url: `http://127.0.0.1:${port}`, program };
}

const characters = ["a brave fox", "a small robot", "the old captain", "two sisters"];
const wishes = ["Where does it live?", "What does it eat?", "Who is its friend?", "What happens at night?", "Does it ever go home?", "How does it end?"];

// A conversation of a few turns: those of one `style` begin with the same rules, and no two are the same from there on.
export class Conversation {
  constructor(number, styles = 4) {
    const style = number % styles;
    const rules = `You tell stories about ${characters[style % characters.length]}. ${`Rule ${style}: be kind, be short, and never tell the same story twice. `.repeat(6)}`;
    this.messages = [{ role: "system", content: rules }, { role: "user", content: `Tell me story ${number} of ${characters[style % characters.length]}.` }];
    this.turn = 0;
  }

  // The body of the next request, and what its answer makes of the conversation.
  body(fields = {}) { return { messages: this.messages, max_tokens: 12, temperature: 0, seed: 1, ignore_eos: true, ...fields }; }
  take(text) {
    this.messages = [...this.messages, { role: "assistant", content: text }, { role: "user", content: `${wishes[this.turn % wishes.length]} (${this.turn})` }];
    ++this.turn;
  }
}

// Holds `count` conversations of `turns` turns at `url`, `at_once` of them at a time. What share of all tokens of prompts was in a cache.
export async function hit_rate(url, { count, turns, at_once }) {
  const all = Array.from({ length: count }, (_, number) => new Conversation(number));
  let prompt = 0;
  let cached = 0;
  const hold = async () => {
    for (let conversation = all.shift(); conversation; conversation = all.shift()) {
      for (let turn = 0; turn < turns; ++turn) {
        const response = await post(`${url}/v1/chat/completions`, conversation.body());
        const answer = await response.json();
        if (response.status !== 200) throw new Error(JSON.stringify(answer));
        prompt += answer.usage.prompt_tokens;
        cached += answer.usage.prompt_tokens_details?.cached_tokens ?? 0;
        conversation.take(answer.choices[0].message.content);
      }
    }
  };
  await Promise.all(Array.from({ length: at_once }, hold));
  return cached / prompt;
}
