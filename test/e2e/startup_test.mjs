// What a user sees on the terminal when something is asked that cannot be, and the commands that need no server.
import assert from "node:assert/strict";
import { copyFileSync, existsSync, readFileSync, readdirSync, readlinkSync, truncateSync, writeFileSync } from "node:fs";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { test } from "node:test";
import { braid, braidBinary, freePort, Process, run, serve, sourceFolder, temporaryFolder } from "./support/processes.mjs";
import { eventually, post } from "./support/client.mjs";

const draft = path.join(sourceFolder, "models/demo-draft-q8_0.gguf");

// One sentence on stderr: one line that names what it is about; a mistake on the command line also says where to find help.
function one_sentence(result, code, pattern) {
  assert.equal(result.code, code, JSON.stringify(result));
  const lines = result.stderr.trim().split("\n").filter((line) => !/ info loading weights/.test(line));  // told on slow machines
  const [sentence, ...more] = lines;
  assert.match(sentence, pattern);
  assert.deepEqual(more.filter((line) => !/^Try 'braid.* --help'\.$/.test(line)), []);
}

test("--version and --help", async (t) => {
  assert.match((await braid(t, ["--version"])).stdout, /^braid \d+\.\d+\.\d+$/);
  for (const command of [[], ["serve"], ["run"], ["info"], ["bench", "serve"]]) {
    const help = await braid(t, [...command, "--help"]);
    assert.equal(help.code, 0);
    assert.match(help.stdout, /Usage: braid/);
    assert.ok(help.stdout.split("\n").every((line) => line.length <= 160), "help lines fit a terminal");
  }
});

test("unusable values are refused with 2 and a sentence", async (t) => {
  const cases = [[["--port", "70000"], /--port.*'70000' is not a whole number from 0 to 65535/],
    [["--kv-memory", "lots"], /--kv-memory.*'lots' is not a size/], [["--block-size", "12"], /--block-size/],
    [["--drain-timeout", "soon"], /--drain-timeout.*'soon' is not a duration/], [["--max-batch", "0"], /--max-batch/],
    [["--isa", "mmx"], /--isa.*'mmx'/], [["--kv-dtype", "int4"], /--kv-dtype/], [["--huge-pages", "big"], /--huge-pages.*'big'/], [["--nonsense"], /--nonsense/],
    [["--config", "/does/not/exist.yaml"], /cannot read/], [["--no-model", "x.gguf"], /--no-model/],
    [["--max-batch", "64", "--max-batch-tokens", "32"], /max.batch.tokens/]];
  for (const [args, pattern] of cases) one_sentence(await braid(t, ["serve", ...args]), 2, pattern);
  one_sentence(await braid(t, []), 2, /a command is needed/);
});

test("a configuration file sets options, and the command line wins", async (t) => {
  const file = path.join(temporaryFolder(t), "braid.yaml");
  writeFileSync(file, "# a comment\nalias: from-file\nmax-waiting: 7\nno-model: true\n");
  const server = await serve(t, ["--config", file]);
  assert.equal((await fetch(`${server.url}/health`)).status, 200);
  writeFileSync(file, `alias: from-file\nmodel: ${draft}\n`);
  const named = await serve(t, ["--config", file, "--alias", "from-line"]);
  assert.equal((await (await fetch(`${named.url}/v1/models`)).json()).data[0].id, "from-line");
  writeFileSync(file, "alias: x\nmax-wating: 7\n");
  one_sentence(await braid(t, ["serve", "--config", file]), 2, /braid\.yaml:2: there is no option 'max-wating'/);
});

test("damaged model files end with 1 and one sentence", async (t) => {
  const folder = temporaryFolder(t);
  const sound = readFileSync(draft);
  const zeroed = Buffer.from(sound);
  zeroed.fill(0, 8, 24);
  const cases = {
    "empty.gguf": Buffer.alloc(0), "random.gguf": Buffer.from("these are not the bytes you are looking for"),
    "pointer.gguf": Buffer.from("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n"),
    "page.gguf": Buffer.from("<!DOCTYPE html><html><body>404</body></html>"), "cut-header.gguf": sound.subarray(0, 1000),
    "cut-tensors.gguf": sound.subarray(0, sound.length - 1000), "no-tensors.gguf": zeroed,
  };
  for (const [name, bytes] of Object.entries(cases)) {
    const file = path.join(folder, name);
    writeFileSync(file, bytes);
    for (const command of [["serve", "--port", "0"], ["info"]])
      one_sentence(await braid(t, [...command, file]), 1, new RegExp(name.replace(".", "\\.")));
  }
  one_sentence(await braid(t, ["serve", "--port", "0", path.join(folder, "missing.gguf")]), 1, /missing\.gguf/);
  one_sentence(await braid(t, ["serve", "--port", "0", folder]), 1, /braid-e2e-/);
});

test("a model file that is cut short while it is read is told", async (t) => {
  const file = path.join(temporaryFolder(t), "short.gguf");
  copyFileSync(path.join(sourceFolder, "models/demo-q8_0.gguf"), file);
  const server = await serve(t, [file, "--threads", "1"], { ready: false, prefix: ["nice", "-n", "19"] });
  await eventually("it is mapped", () => readFileSync(`/proc/${server.child.pid}/maps`, "utf8").includes("short.gguf"));
  truncateSync(file, 0);
  // Where the machine was so slow that not even its beginning had been read, what is left is no model file.
  if ((await server.exited).signal === "SIGBUS") assert.match(server.errors, /a file that is being read has become shorter/);
  else assert.match(server.errors + server.lines.join("\n"), /short\.gguf/);
});

test("a folder or nothing in place of a file ends with one sentence", async (t) => {
  const folder = temporaryFolder(t);
  const template = (file) => braid(t, ["serve", draft, "--port", "0", "--chat-template", file]);
  one_sentence(await template(folder), 1, /the chat template cannot be read/);
  one_sentence(await template("/dev/null"), 1, /the chat template is empty/);
  one_sentence(await braid(t, ["serve", "--config", folder]), 2, /--config: cannot read/);
  one_sentence(await braid(t, ["serve", "--no-model", "--api-key-file", "/proc/self/mem"]), 2, /--api-key-file: cannot read/);
  one_sentence(await braid(t, ["cache", "export", draft, path.join(folder, "kv"), "--prompt-file", folder]), 1, /cannot read/);
  one_sentence(await braid(t, ["cache", "import", draft, folder, "--kv-disk", folder]), 1, /cannot read/);
});

test("a standard stream that is closed is none of the server's files", async (t) => {
  const server = await serve(t, ["--no-model"], { prefix: ["sh", "-c", 'exec "$0" "$@" 0<&- 2>&-'] });
  for (const file of [0, 2]) assert.equal(readlinkSync(`/proc/${server.child.pid}/fd/${file}`), "/dev/null");
});

test("a token for which there is no space leaves nothing behind", async (t) => {
  const socket = path.join(temporaryFolder(t), "braid.sock");
  const args = [braidBinary, "serve", "--no-model", "--unix-socket", socket];
  const home = temporaryFolder(t);  // which can have no registry either, and says so before
  const env = { ...process.env, HOME: home, XDG_DATA_HOME: home };
  const { code, stderr } = await run(t, "sh", ["-c", 'ulimit -f 0; exec "$0" "$@"', ...args], { env });
  assert.equal(code, 1, stderr);
  assert.match(stderr, /cannot use the token in .*: File too large/);
  assert.equal(existsSync(`${socket}.token`), false);
});

test("standard output on a full disk fails a command and leaves a server alone", async (t) => {
  const full = ["-c", 'exec "$0" "$@" > /dev/full'];
  one_sentence(await run(t, "sh", [...full, braidBinary, "info", draft]), 1, /standard output could not be written/);
  const port = await freePort();
  const many = Array.from({ length: 200 }, () => ["--listen", "127.0.0.1:0"]).flat();
  const server = new Process(t, "sh", [...full, braidBinary, "serve", "--no-model", "--port", `${port}`, ...many]);
  await eventually("it serves", () => fetch(`http://127.0.0.1:${port}/health`).then((answer) => answer.ok, () => false));
  server.child.kill("SIGTERM");
  assert.deepEqual(await server.exited, { code: 0, signal: null });
});

test("memory that does not suffice is said in a sentence", async (t) => {
  one_sentence(await braid(t, ["serve", "--port", "0", draft, "--kv-memory", "1K"]), 2, /KV memory holds 0 tokens/);
  one_sentence(await braid(t, ["serve", "--port", "0", draft, "--ctx", "100000"]), 2, /1024/);
});

// The draft with feed-forwards of `width`, in a file whose weights are a hole.
function widened(t, width) {
  const bytes = readFileSync(draft);
  const key = "llama.feed_forward_length";
  bytes.writeUInt32LE(width, bytes.indexOf(key) + key.length + 4);
  const align = (at) => Math.ceil(at / 32) * 32;
  let at = bytes.indexOf("token_embd.weight") - 8;  // the first tensor: its name, extents, type and offset, then the next one
  let data = 0;
  for (let left = Number(bytes.readBigUInt64LE(8)); left > 0; left--) {
    const name = bytes.toString("latin1", at + 8, at + 8 + Number(bytes.readBigUInt64LE(at)));
    const extents = bytes.readUInt32LE(at + 8 + name.length);
    const shape = at + 12 + name.length;
    if (/ffn_(gate|up|down)/.test(name)) bytes.writeBigUInt64LE(BigInt(width), shape + (name.includes("down") ? 0 : 8));
    let values = 1;
    for (let i = 0; i < extents; i++) values *= Number(bytes.readBigUInt64LE(shape + i * 8));
    at = shape + extents * 8 + 12;
    bytes.writeBigUInt64LE(BigInt(data), at - 8);
    data = align(data + (bytes.readUInt32LE(at - 12) === 8 ? values / 32 * 34 : values * 4));  // Q8_0 or F32
  }
  const file = path.join(temporaryFolder(t), "wide.gguf");
  writeFileSync(file, bytes.subarray(0, align(at)));
  truncateSync(file, align(at) + data);
  return file;
}

test("a model larger than memory is refused with the numbers, before it is read", async (t) => {
  if (os.totalmem() > 64 * 2 ** 30) return t.skip("this machine would hold it");
  const file = widened(t, 2 ** 24);
  const sentence = /needs \d+\.?\d* GiB for its weights and [\d.]+ GiB to compute with, but .+ leaves [\d.]+ GiB: raise that, name a smaller model/;
  for (const more of [[], ["--kv-disk", temporaryFolder(t)]])
    one_sentence(await braid(t, ["serve", "--port", "0", file, ...more]), 1, sentence);
});

test("a port that is taken ends with 1 and one sentence", async (t) => {
  const taken = net.createServer().listen(0, "127.0.0.1");
  t.after(() => taken.close());
  await new Promise((resolve) => taken.on("listening", resolve));
  const { port } = taken.address();
  one_sentence(await braid(t, ["serve", "--no-model", "--port", String(port)]), 1, new RegExp(String(port)));
  one_sentence(await braid(t, ["serve", "--no-model", "--port", "0", "--host", "203.0.113.1"]), 1, /203\.0\.113\.1/);
});

test("--no-model serves health, an empty list and 503", async (t) => {
  const server = await serve(t, ["--no-model"]);
  assert.equal(await (await fetch(`${server.url}/health`)).text(), '{"status":"ok"}');
  assert.deepEqual((await (await fetch(`${server.url}/v1/models`)).json()).data, []);
  const refused = await post(`${server.url}/v1/completions`, { prompt: "Hello" });
  assert.equal(refused.status, 503);
  assert.equal((await refused.json()).error.code, "model_not_loaded");
  server.child.kill("SIGTERM");
  assert.deepEqual(await server.exited, { code: 0, signal: null });
});

test("a model of one's own, named after its file", async (t) => {
  const server = await serve(t, [draft, "--ctx", "256", "--threads", "1", "--kv-dtype", "f32", "--no-warmup"]);
  const model = (await (await fetch(`${server.url}/v1/models`)).json()).data[0];
  assert.equal(model.id, "demo-draft-q8_0");
  const answer = await (await post(`${server.url}/v1/completions`, { prompt: "Hello", max_tokens: 1000, ignore_eos: true })).json();
  assert.equal(answer.usage.total_tokens, 256);
  assert.equal(answer.choices[0].finish_reason, "length");
});

// CPUs of each thread of a process, such as "0" or "0-1".
const cpusOfThreads = (pid) => readdirSync(`/proc/${pid}/task`)
  .map((task) => /Cpus_allowed_list:\s*(\S+)/.exec(readFileSync(`/proc/${pid}/task/${task}/status`, "utf8"))[1]);

test("--pin-threads keeps each compute thread, and no other, on a CPU of its own", async (t) => {
  const all = /Cpus_allowed_list:\s*(\S+)/.exec(readFileSync("/proc/self/status", "utf8"))[1];
  if (!/[-,]/.test(all)) return t.skip("one CPU only");
  const server = await serve(t, [draft, "--ctx", "256", "--threads", "2", "--pin-threads"]);
  await post(`${server.url}/v1/completions`, { prompt: "Hello", max_tokens: 2 });
  const pinned = cpusOfThreads(server.child.pid).filter((cpus) => cpus !== all);
  assert.equal(pinned.length, 2);
  assert.equal(new Set(pinned).size, 2);
  assert.ok(pinned.every((cpus) => /^\d+$/.test(cpus)), pinned.join(" "));
  one_sentence(await braid(t, ["serve", draft, "--port", "0", "--threads", "1024", "--pin-threads", "--log-level", "error"]), 2, /--pin-threads needs a CPU for each of 1024/);
});

test("--huge-pages off asks for none", { skip: !existsSync("/sys/kernel/mm/transparent_hugepage") }, async (t) => {
  for (const kind of ["transparent", "off"]) {
    const server = await serve(t, [draft, "--ctx", "256", "--threads", "1", "--huge-pages", kind]);
    const flags = readFileSync(`/proc/${server.child.pid}/smaps`, "utf8").match(/VmFlags:.*/g).map((line) => line.split(" "));
    assert.equal(flags.some((set) => set.includes("hg")), kind === "transparent", kind);
  }
});

test("every tier of this machine serves the same greedy answer", async (t) => {
  const answers = new Set();
  for (const isa of ["scalar", "avx2"]) {
    const server = await serve(t, [draft], { env: { BRAID_ISA: isa } });
    const body = { prompt: "Once upon a time", max_tokens: 24, temperature: 0 };
    answers.add((await (await post(`${server.url}/v1/completions`, body)).json()).choices[0].text);
    server.child.kill("SIGTERM");
    await server.exited;
  }
  assert.equal(answers.size, 1, [...answers].join("\n"));
});

test("braid info", async (t) => {
  const info = await braid(t, ["info", draft]);
  assert.equal(info.code, 0, info.stderr);
  for (const part of [/llama/, /general\.architecture/, /Q8_0/, /context/i, /KV/]) assert.match(info.stdout, part);
});

test("what a model file says steers no terminal", async (t) => {
  const file = path.join(temporaryFolder(t), "hostile.gguf");
  const bytes = readFileSync(draft);
  bytes.write("\x1b[2J", bytes.indexOf("Braid Demo Draft"), "latin1");
  bytes.write("\x1b", bytes.indexOf("general.license"), "latin1");
  writeFileSync(file, bytes);
  const info = await braid(t, ["info", file]);
  assert.equal(info.code, 0, info.stderr);
  assert.match(info.stdout, /\\x1b\[2J/);
  assert.match(info.stdout, /\\x1beneral\.license/);
  assert.doesNotMatch(info.stdout, /\x1b/);
  bytes.write("\x1b[2Ja", bytes.indexOf("llama", bytes.indexOf("general.architecture")), "latin1");
  writeFileSync(file, bytes);
  for (const command of ["info", "run"]) {
    const refused = await braid(t, [command, file]);
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /\\x1b\[2Ja/);
    assert.doesNotMatch(refused.stderr, /\x1b/);
  }
});

test("braid run answers a prompt and chats", async (t) => {
  const one = await braid(t, ["run", "What is 17 + 25?", "--temperature", "0"]);
  assert.deepEqual([one.code, one.stdout.trim()], [0, "17 + 25 = 42."], one.stderr);
  const chat = await braid(t, ["run", "--temperature", "0"], { input: "What is 17 + 25?\nHi! Who are you?\n" });
  assert.equal(chat.code, 0);
  assert.match(chat.stdout, /17 \+ 25 = 42\.[^]*Braid/);
});
