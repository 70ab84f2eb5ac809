// Starts braid, nginx and other programs for one test, and ends them with it.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import net from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";

export const braidBinary = process.env.BRAID_BINARY;
// Whether it was built with a sanitizer, which looks at each path and needs no long answers and no further rounds.
export const sanitized = Boolean(process.env.BRAID_SANITIZED);
export const sourceFolder = path.resolve(import.meta.dirname, "../../..");

// A folder that goes with the test.
export function temporaryFolder(t) {
  const folder = mkdtempSync(path.join(tmpdir(), "braid-e2e-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

export class Process {
  lines = [];
  errors = "";
  #waiting = [];

  constructor(t, command, args, options = {}) {
    this.child = spawn(command, args, { stdio: ["pipe", "pipe", "pipe"], ...options });
    this.exited = new Promise((resolve, reject) => {
      this.child.on("error", reject);
      this.child.on("close", (code, signal) => resolve({ code, signal }));
    });
    this.exited.catch(() => {}).then(() => this.#wake());
    createInterface({ input: this.child.stdout }).on("line", (line) => { this.lines.push(line); this.#wake(); });
    this.child.stderr.on("data", (data) => { this.errors += data; });
    t.after(async () => {
      if (this.child.exitCode === null && this.child.signalCode === null) this.child.kill("SIGKILL");
      await this.exited.catch(() => {});
    });
  }

  #wake() { for (const wake of this.#waiting.splice(0)) wake(); }

  // The first line of output that matches; an error when the program ends without one.
  async line(pattern) {
    for (;;) {
      const found = this.lines.map((line) => line.match(pattern)).find((match) => match);
      if (found) return found;
      if (this.child.exitCode !== null || this.child.signalCode !== null)
        throw new Error(`ended without ${pattern}:\n${this.lines.join("\n")}\n${this.errors}`);
      await new Promise((resolve) => this.#waiting.push(resolve));
    }
  }
}

// `model` with tokens that mark a gap, written in front of its metadata; what is inserted keeps its tensors aligned.
function with_gap(model) {
  const text = (value) => { const bytes = Buffer.alloc(8 + value.length); bytes.writeBigUInt64LE(BigInt(value.length)); bytes.write(value, 8); return bytes; };
  const whole = (value) => { const bytes = Buffer.alloc(4); bytes.writeUInt32LE(value); return bytes; };
  const added = ["pre", "suf", "mid"].map((name, i) => Buffer.concat([text(`tokenizer.ggml.fim_${name}_token_id`), whole(4), whole(100 + i)]));
  const length = added.reduce((sum, { length }) => sum + length, 0) + text("note").length + 4 + 8;
  added.push(text("note"), whole(8), text(" ".repeat((32 - length % 32) % 32)));
  const head = Buffer.from(model.subarray(0, 24));
  head.writeBigUInt64LE(head.readBigUInt64LE(16) + 4n, 16);
  return Buffer.concat([head, ...added, model.subarray(24)]);
}

// The embedded model with a longer context written into its metadata, and with tokens for a gap, which it was not trained to fill.
export function longModel(t) {
  const model = with_gap(readFileSync(path.join(sourceFolder, "models/demo-q8_0.gguf")));
  const value = model.indexOf(".context_length") + ".context_length".length + 4;
  assert.equal(model.readUInt32LE(value), 1024);
  model.writeUInt32LE(65536, value);
  const file = path.join(temporaryFolder(t), "long.gguf");
  writeFileSync(file, model);
  return file;
}

// That one without a token that ends answers: they go on to the end of its context.
export function endlessModel(t) {
  const file = longModel(t);
  const model = readFileSync(file);
  for (const name of ["eos", "eot"]) {
    const key = `tokenizer.ggml.${name}_token_id`;
    model.writeUInt32LE(3, model.indexOf(key) + key.length + 4);  // the padding
  }
  model.write("<|im_enx|>", model.indexOf("<|im_end|>"));
  writeFileSync(file, model);
  return file;
}

// `braid serve ARGS` on a free port unless `port` says otherwise, by way of the command `prefix` if any, which must become it (exec).
// With `ready` false it does not wait for the model.
export async function serve(t, args = [], { ready = true, env = {}, prefix = [], binary = braidBinary, port = ["--port", "0"], cwd } = {}) {
  // A pool of its own choice would grow beside the test for seconds, into gigabytes.
  const chooses = prefix.length || cwd || env.BRAID_CONFIG || args.some((arg) => /^--(kv-memory|memory|models-dir|config|no-model)/.test(arg));
  const command = [...prefix, binary, "serve", ...port, ...(chooses ? [] : ["--kv-memory", "256MiB"]), ...args];
  const data = env.BRAID_DATA_DIR ?? temporaryFolder(t);  // nobody else's models
  const server = new Process(t, command[0], command.slice(1), { cwd, env: { ...process.env, BRAID_DATA_DIR: data, ...env } });
  server.url = (await server.line(/listening on (https?:\S+)/))[1];
  server.port = Number(new URL(server.url).port);
  if (ready) await server.line(/^ready/);
  return server;
}

// A server whose model answers by `rules`: the first one whose `when` stands in the prompt says its `say`.
export async function serveScript(t, rules) {
  const script = path.join(temporaryFolder(t), "script.json");
  writeFileSync(script, JSON.stringify(rules));
  const server = new Process(t, process.env.BRAID_SCRIPTED_SERVER, [script]);
  server.url = (await server.line(/listening on (\S+)/))[1];
  await server.line(/^ready/);
  return server;
}

// Runs a program to its end.
export async function run(t, command, args, { input = "", ...options } = {}) {
  const program = new Process(t, command, args, options);
  program.child.stdin.on("error", () => {});
  program.child.stdin.end(input);
  const { code, signal } = await program.exited;
  return { code, signal, stdout: program.lines.join("\n"), stderr: program.errors };
}

export const braid = (t, args, options) => run(t, braidBinary, args, options);

export async function freePort() {
  const probe = net.createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => probe.on("listening", resolve));
  const { port } = probe.address();
  await new Promise((resolve) => probe.close(resolve));
  return port;
}

const accepts = (port) => new Promise((resolve) => {
  const socket = net.connect(port, "127.0.0.1");
  socket.on("connect", () => { socket.destroy(); resolve(true); });
  socket.on("error", () => resolve(false));
});

// nginx with the shipped site, changed in its two ports only, and nginx's own defaults otherwise. Returns its URL.
export async function nginx(t, upstreamPort) { return (await start_nginx(t, upstreamPort)).url; }

export async function start_nginx(t, upstreamPort) {
  const folder = temporaryFolder(t);
  const port = await freePort();
  const site = readFileSync(path.join(sourceFolder, "deploy/nginx/braid.conf"), "utf8")
    .replace("listen 80;", `listen 127.0.0.1:${port};`)
    .replace("http://127.0.0.1:8000;", `http://127.0.0.1:${upstreamPort};`);
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((kind) => `${kind}_temp_path ${folder}/${kind};`);
  writeFileSync(path.join(folder, "nginx.conf"),
    `daemon off;\nmaster_process off;  # one process to end\npid ${folder}/pid;\nerror_log stderr;\nevents { worker_connections 1024; }\n` +
    `http {\naccess_log off;\n${temporary.join("\n")}\n${site}\n}\n`);
  const command = process.env.BRAID_NGINX;
  const proxy = new Process(t, command, ["-p", folder, "-c", path.join(folder, "nginx.conf")]);
  while (!(await accepts(port))) {
    if (proxy.child.exitCode !== null) throw new Error(`nginx ended:\n${proxy.errors}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  proxy.url = `http://127.0.0.1:${port}`;
  return proxy;
}
