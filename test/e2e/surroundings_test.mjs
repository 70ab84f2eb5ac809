// What the system around a server may limit or lack: it keeps within the one, and goes on or says what to give without the other.
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { braidBinary, freePort, Process, run, serve } from "./support/processes.mjs";
import { collect, eventually, post } from "./support/client.mjs";

const limited = (limit) => ["sh", "-c", `ulimit ${limit}; exec "$0" "$@"`];
const story = { prompt: "Once upon a time", max_tokens: 8, ignore_eos: true, stream: true };

// Prompts that differ from the first token on, so that no block is shared.
const filling = (count) => Array.from({ length: count },
  (_, i) => ({ ...story, prompt: Array.from({ length: 600 }, (_, j) => 300 + (i * 601 + j * 7) % 3000) }));

// What the libraries take of it differs between distributions.
for (const [limit, small, bound] of [["-v 600000", "-v 250000", "ulimit -v"], ["-d 400000", "-d 150000", "ulimit -d"]]) {
  test(`a KV pool keeps within ${bound}`, async (t) => {
    const [command, ...args] = limited(limit);
    const refused = await run(t, command, [...args, braidBinary, "serve", "--port", "0", "--kv-memory", "500MiB"]);
    assert.equal(refused.code, 2, refused.stderr);
    assert.match(refused.stderr, new RegExp(`^braid: --kv-memory 500 MiB is more than the .* that ${bound} leaves beside the model$`, "m"));
    const smaller = await serve(t, [], { prefix: limited(limit) });
    assert.equal((await collect(await post(`${smaller.url}/v1/completions`, story))).done, true);
  });
  test(`a model that does not fit under ${bound} is refused before it is read`, async (t) => {
    const [command, ...args] = limited(small);
    const refused = await run(t, command, [...args, braidBinary, "serve", "--port", "0", "--threads", "2"]);
    assert.equal(refused.code, 1, refused.stderr);
    assert.match(refused.stderr, new RegExp(`the model needs .* but ${bound} leaves .* lower --max-batch and --threads`));
  });
  test(`a start whose threads' stacks do not fit under ${bound} says so`, async (t) => {
    const [command, ...args] = limited(`-s 8192; ulimit ${limit}`);
    const refused = await run(t, command, [...args, braidBinary, "serve", "--port", "0", "--threads", "96"]);
    assert.equal(refused.code, 1, refused.stderr);
    assert.match(refused.stderr, new RegExp(`no more than \\d+ of 96 compute threads.*raise ${bound}, where their stacks count, ulimit -u`));
  });
}

// A control group of this test's own, below the one it runs in, with a limit in the file of version 1 or 2; or why there is none.
function control_group(t, controller, files, limit) {
  const lines = readFileSync("/proc/self/cgroup", "utf8").split("\n");
  const version1 = lines.some((line) => line.split(":")[1]?.split(",").includes(controller));
  const version2 = lines.map((line) => line.match(/^0::(.*)$/)).find((match) => match);
  const folder = version1 ? path.join("/sys/fs/cgroup", controller, `braid-test-${process.pid}`)
    : path.join("/sys/fs/cgroup", version2?.[1] ?? "", `braid-test-${process.pid}`);
  try {
    mkdirSync(folder);
    t.after(() => rmdirSync(folder));  // by then the server has ended
    writeFileSync(path.join(folder, files[version1 ? 0 : 1]), String(limit));
    return { folder, prefix: ["sh", "-c", 'echo $$ > "$0"; exec "$@"', path.join(folder, "cgroup.procs")] };
  } catch (error) {
    return { refused: `no ${controller} control group can be made here: ${error.message}` };
  }
}

test("a KV pool that a control group's limit leaves room for can be filled", async (t) => {
  const { prefix, refused } = control_group(t, "memory", ["memory.limit_in_bytes", "memory.max"], 300 << 20);
  if (refused) return t.skip(refused);
  const args = ["--threads", "1", "--kv-dtype", "f16", "--no-warmup"];
  const greedy = await run(t, prefix[0], [...prefix.slice(1), braidBinary, "serve", "--port", "0", ...args, "--kv-memory", "254MiB"]);
  assert.equal(greedy.code, 2, greedy.stderr);
  const [, left] = greedy.stderr.match(/--kv-memory 254 MiB is more than the (\d+) MiB that the limit of \S+ leaves beside the model/);
  const server = await serve(t, [...args, "--kv-memory", `${left - 4}MiB`], { prefix });
  const answers = await Promise.all(filling(60).map((body) => post(`${server.url}/v1/completions`, body).then(collect)));
  assert.ok(answers.every((answer) => answer.done));
  server.child.kill("SIGTERM");
  assert.deepEqual(await server.exited, { code: 0, signal: null });
});

test("a start that gets too few threads says which limits to raise", async (t) => {
  const { folder, prefix, refused } = control_group(t, "pids", ["pids.max", "pids.max"], 1);
  if (refused) return t.skip(refused);
  for (let threads = 2; threads <= 8; ++threads) {
    writeFileSync(path.join(folder, "pids.max"), String(threads));
    const short = await run(t, prefix[0], [...prefix.slice(1), braidBinary, "serve", "--port", "0", "--threads", "8"]);
    assert.equal(short.code, 1, short.stderr);
    assert.match(short.stderr, /Resource temporarily unavailable.*: for more threads raise ulimit -u or the control group's pids\.max, or lower --threads$/m);
  }
});

const unknown = ["SIGUSR2", "SIGALRM", "SIGVTALRM", "SIGPROF", "SIGIO", "SIGPWR", "SIGSTKFLT", "SIGXCPU"];

test("signals that mean nothing to it end nothing, and are told", async (t) => {
  const server = await serve(t, ["--no-model"]);
  for (const signal of unknown) {
    server.child.kill(signal);
    await eventually(signal, () => server.errors.includes(`${signal} is nothing to this server`));
  }
  await run(t, "sh", ["-c", `kill -40 ${server.child.pid}`]);
  await eventually("a real-time one", () => /SIGRTMIN\+\d+ is nothing to this server/.test(server.errors));
  server.child.kill("SIGUSR1");
  await eventually("its state", () => /SIGUSR1: .* connections, .* no model/.test(server.errors));
  for (const signal of ["SIGPIPE", "SIGXFSZ", "SIGWINCH", "SIGCONT", "SIGCHLD", "SIGURG"]) server.child.kill(signal);
  assert.equal((await fetch(`${server.url}/health`)).status, 200);
  server.child.kill("SIGQUIT");
  assert.deepEqual(await server.exited, { code: 0, signal: null });
});

test("a stream goes on through them", async (t) => {
  const server = await serve(t, ["--threads", "1"]);
  const answer = post(`${server.url}/v1/completions`, { ...story, max_tokens: 200 }).then(collect);
  for (const signal of [...unknown, "SIGUSR1"]) server.child.kill(signal);
  assert.equal((await answer).done, true);
  await eventually("its state", () => /SIGUSR1: .* connections, .* KV blocks are free/.test(server.errors));
});

// A server on a port that is known beforehand, since it cannot say it; `shell` starts "$@".
async function mute_server(t, shell) {
  const port = await freePort();
  const server = new Process(t, "bash", ["-c", shell, "bash", braidBinary, "serve", "--no-model", "--port", `${port}`]);
  const health = () => fetch(`http://127.0.0.1:${port}/health`).then((answer) => answer.ok, () => false);
  await eventually("it serves", health);
  return { server, health };
}

// Pipes that have neither room nor a reader that makes any, and some whose reader has gone; from the beginning.
const full = 'mkfifo "$0" && exec 9<>"$0" && rm "$0" && { dd if=/dev/zero bs=4096 count=17 oflag=nonblock >&9 2>/dev/null; true; }';
const outputs = {
  "closed": 'exec "$@" >&- 2>&-',
  "on a full disk": 'exec "$@" >/dev/full 2>/dev/full',
  "pipes without a reader": 'exec "$@" 1> >(exec true) 2> >(exec true)',
  "full pipes": `${full.replaceAll('"$0"', '/tmp/braid-fifo-$$')} && exec "$@" >&9 2>&9`,
};
for (const [kind, shell] of Object.entries(outputs)) {
  test(`standard output and standard error ${kind}: it serves and ends`, async (t) => {
    const { server, health } = await mute_server(t, shell);
    for (const signal of Array(100).fill("SIGUSR1")) server.child.kill(signal);  // each is a line
    assert.equal(await health(), true);
    server.child.kill("SIGTERM");
    assert.deepEqual(await server.exited, { code: 0, signal: null });
  });
}

test("a start that fails says so to nobody and still ends", async (t) => {
  for (const shell of Object.values(outputs)) {
    const refused = await run(t, "bash", ["-c", shell, "bash", braidBinary, "serve", "--port", "0", "/no/such/model.gguf"]);
    assert.deepEqual([refused.code, refused.signal], [1, null]);
  }
});

test("without /proc and /sys it wants --kv-memory and then serves", async (t) => {
  const hidden = 'mount -t tmpfs none /proc && mount -t tmpfs none /sys && exec "$@"';
  const prefix = ["unshare", "-m", "sh", "-c", hidden, "sh"];
  const probe = await run(t, prefix[0], [...prefix.slice(1), "true"]);
  if (probe.code !== 0) return t.skip(`no mount namespace can be made here: ${probe.stderr.trim()}`);
  const refused = await run(t, prefix[0], [...prefix.slice(1), braidBinary, "serve", "--port", "0"]);
  assert.equal(refused.code, 1, refused.stderr);
  assert.match(refused.stderr, /cannot find out how much memory there is.*; say with --kv-memory how much the KV pool may take/);
  const server = await serve(t, ["--kv-memory", "64MiB"], { prefix });
  assert.equal((await collect(await post(`${server.url}/v1/completions`, story))).done, true);
});
