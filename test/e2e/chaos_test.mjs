// What surrounds the server breaks: nginx dies, the disk is full, files run out. It says so, and goes on by itself when that is
// over; and it says so when there is not the memory to begin.
import assert from "node:assert/strict";
import { test } from "node:test";
import { readFileSync } from "node:fs";
import { run, serve, start_nginx, temporaryFolder } from "./support/processes.mjs";
import { collect, eventually, frees_everything, metric, post, RawConnection } from "./support/client.mjs";

const body = { prompt: "Once upon a time", max_tokens: 40, temperature: 0, ignore_eos: true, return_token_ids: true, stream: true };
const ask = async (server, wish = body) => collect(await post(`${server.url}/v1/completions`, wish));

// Changes a limit of a running server: prlimit's names, such as "nofile=40".
async function limit(t, server, what) {
  const { code, stderr } = await run(t, "prlimit", ["--pid", String(server.child.pid), `--${what}`]);
  assert.equal(code, 0, stderr);
}
const says = (server, pattern) => eventually(`it says ${pattern}`, () => pattern.test(server.errors));

test("nginx is killed while it carries streams", async (t) => {
  const server = await serve(t, ["--isa", "avx2", "--threads", "1"]);  // slow enough to be caught in the middle
  const alone = await ask(server);
  const proxy = await start_nginx(t, server.port);
  const clients = Array.from({ length: 8 }, () => new RawConnection(proxy.url));
  for (const client of clients) client.post("/v1/completions", { ...body, max_tokens: 900 });
  await eventually("all of them stream", () => clients.every((client) => client.received.includes("data: ")), 60);
  proxy.child.kill("SIGKILL");
  await Promise.all(clients.map((client) => client.closed));
  await frees_everything(server.url);
  const again = await start_nginx(t, server.port);
  assert.deepEqual(await ask({ url: again.url }), alone);
});

test("the disk is full", async (t) => {
  const folder = temporaryFolder(t);
  const server = await serve(t, ["--kv-disk", folder, "--kv-disk-write", "through", "--kv-disk-limit", "1G"]);  // any disk has that
  const wish = (i) => ({ ...body, prompt: `${i} foxes ${"and kites ".repeat(60)}` });
  const alone = await ask(server, wish(0));
  await eventually("blocks are written", async () => (await metric(server.url, "braid_disk_cache_writes_total")) > 0);
  await limit(t, server, "fsize=4096:unlimited");
  for (let i = 1; i < 4; ++i) assert.equal((await ask(server, wish(i))).tokens.length, body.max_tokens);
  await says(server, /disk cache: cannot write to .*: File too large; trying again in \d+ s/);
  assert.ok((await metric(server.url, "braid_disk_cache_write_errors_total")) > 0);
  assert.deepEqual(await ask(server, wish(0)), alone);
  await limit(t, server, "fsize=unlimited:unlimited");
  const written = await metric(server.url, "braid_disk_cache_writes_total");
  let i = 4;
  await eventually("blocks are written again", async () => {
    await ask(server, wish(i++));
    return (await metric(server.url, "braid_disk_cache_writes_total")) > written;
  }, 90);
});

test("no more files can be opened", async (t) => {
  const server = await serve(t);
  const alone = await ask(server);
  const open = await metric(server.url, "process_open_fds");
  const running = new RawConnection(server.url);
  running.post("/v1/completions", { ...body, max_tokens: 900 });
  await eventually("it streams", () => running.received.includes("data: "));
  await limit(t, server, `nofile=${open + 8}:${open + 8}`);
  const clients = Array.from({ length: 40 }, () => new RawConnection(server.url));
  await says(server, /cannot accept a connection: Too many open files/);
  await eventually("the running stream ends as it should", () => running.received.includes("[DONE]"));
  for (const client of clients) client.leave("FIN");
  running.leave("FIN");
  await frees_everything(server.url);
  assert.deepEqual(await ask(server), alone);
});

// Without memory that was set apart before the limit is there (src/app/heap.h).
const ordinary_pages = ["--kv-memory", "64MiB", "--huge-pages", "off"];

test("memory runs out while long requests are read", async (t) => {
  const server = await serve(t, ordinary_pages);
  const alone = await ask(server);
  const long = JSON.stringify({ ...body, prompt: "some words ".repeat(2_700_000) });  // 30 MB
  for (const spare of [40, 60, 80, 100, 130]) {
    const pages = Number(readFileSync(`/proc/${server.child.pid}/statm`, "utf8").split(" ")[0]);
    const running = Array.from({ length: 16 }, () => ask(server));
    await limit(t, server, `as=${pages * 4096 + spare * 1_000_000}:unlimited`);
    const clients = Array.from({ length: 6 }, () => new RawConnection(server.url));
    for (const client of clients) client.post("/v1/completions", long);
    const is_over = (client) => client.socket.closed || /HTTP\/1.1 [45]/.test(client.received);
    await eventually("each is answered or turned away", () => clients.every(is_over));
    for (const client of clients) client.leave("FIN");
    for (const answer of await Promise.all(running)) assert.deepEqual(answer, alone);
    await limit(t, server, "as=unlimited:unlimited");
    await frees_everything(server.url);
    assert.deepEqual(await ask(server), alone);
  }
  await says(server, /bad_alloc/);
});

test("there is no memory at all while answers are computed", async (t) => {
  const server = await serve(t, ordinary_pages);
  const wish = (i) => ({ ...body, prompt: `${i} ${body.prompt}`, max_tokens: 100, stream: true });
  const alone = await ask(server);
  for (const spare of [0, 2]) {
    const streams = Array.from({ length: 60 }, () => new RawConnection(server.url));
    streams.forEach((stream, i) => stream.post("/v1/completions", wish(i)));
    await eventually("all stream", () => streams.every((stream) => stream.received.includes("data: ")));
    const pages = Number(readFileSync(`/proc/${server.child.pid}/statm`, "utf8").split(" ")[0]);
    await limit(t, server, `as=${pages * 4096 + spare * 1_000_000}:unlimited`);
    const late = Array.from({ length: 20 }, () => new RawConnection(server.url));
    late.forEach((stream, i) => stream.post("/v1/completions", wish(i)));
    for (const stream of streams.slice(40)) stream.leave("RST");
    const is_over = (client) => client.socket.closed || client.received.includes("[DONE]") || /HTTP\/1.1 [45]/.test(client.received);
    await eventually("each comes to an end", () => [...streams.slice(0, 40), ...late].every(is_over), 60);
    for (const stream of [...streams.slice(0, 40), ...late]) stream.leave("FIN");
    await limit(t, server, "as=unlimited:unlimited");
    await frees_everything(server.url);
    assert.deepEqual(await ask(server), alone);
  }
});

test("a start without enough memory says so", async (t) => {
  const server = await serve(t, ["--threads", "2"], { ready: false, prefix: ["prlimit", "--as=200000000"] }).catch((error) => error);
  const { code, signal } = server.exited ? await server.exited : { code: null };
  const said = server.errors ?? server.message;
  assert.equal(signal ?? null, null, said);
  assert.notEqual(code, 0);
  assert.match(said, /ulimit -v leaves .*raise that/);
});
