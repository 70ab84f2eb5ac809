// Servers that share their prefix cache in a Redis: what one has computed another finds, and whatever the Redis does, answers stay the same.
import assert from "node:assert/strict";
import { test } from "node:test";
import { braid, serve, temporaryFolder } from "./support/processes.mjs";
import { eventually, metric, post } from "./support/client.mjs";
import { keys, redis, say } from "./support/redis.mjs";

const story = "Once upon a time, a brave fox named Luna lived in the castle. She loved her kite more than anything. ".repeat(4);
const wish = (ending, more = {}) => ({
  prompt: story + ending, max_tokens: 24, temperature: 0.8, seed: 7, ignore_eos: true, logprobs: 3, return_token_ids: true, ...more,
});

async function ask(server, body) {
  const answer = await (await post(`${server.url}/v1/completions`, body)).json();
  return { choices: answer.choices, cached: answer.usage.prompt_tokens_details.cached_tokens };
}

// One of the servers. A minute: what is tested here is not how fast this machine is.
const hasty = (timeout, url, ...more) => ["--kv-redis", url, "--kv-redis-timeout", timeout, "--kv-disk-read", "always", "--kv-memory", "64M", "--no-warmup", ...more];
const sharing = (url, ...more) => hasty("60s", url, ...more);

// A server that has answered, and all of whose blocks are in the Redis.
async function filled(t, store, ...more) {
  const server = await serve(t, sharing(store.url, ...more));
  const cold = await ask(server, wish("One morning,"));
  assert.equal(cold.cached, 0);
  await eventually("blocks are written", async () => (await keys(store)).length >= 6);
  return { server, cold };
}

test("what one server has computed another finds, with the same bits", async (t) => {
  const store = await redis(t);
  const { cold } = await filled(t, store);
  const other = await serve(t, sharing(store.url));
  const found = await ask(other, wish("One morning,"));
  assert.ok(found.cached > 0, "nothing was found");
  assert.deepEqual(found.choices, cold.choices);
  const again = await ask(other, wish("One morning,"));
  assert.ok(again.cached >= found.cached);
  assert.deepEqual(again.choices, cold.choices);
  assert.equal((await ask(other, wish("One morning,", { cache_salt: "other" }))).cached, 0);
  const stats = await (await fetch(`${other.url}/v1/cache/stats`)).json();
  const { up, reads, lookups, read_errors, failures } = stats.redis;
  assert.deepEqual({ up, found: reads > 0, asked: lookups > 0, read_errors, failures }, { up: true, found: true, asked: true, read_errors: 0, failures: 0 });
  assert.equal(stats.disk, null);
  assert.equal(stats.tokens.disk_hits, found.cached);
  assert.ok((await metric(other.url, "braid_redis_cache_read_bytes_total")) > 0);
  assert.match(await say(store, ["TTL", (await keys(store))[0]]), /:60\d{4}\r\n/);  // a week
  const typed = await serve(t, sharing(store.url, "--kv-dtype", "f32"));
  assert.equal((await ask(typed, wish("One morning,"))).cached, 0, "of another type");
});

test("a disk of a server's own lies above it", async (t) => {
  const store = await redis(t);
  const folder = temporaryFolder(t);
  const { server, cold } = await filled(t, store, "--kv-disk", folder);
  assert.ok((await metric(server.url, "braid_disk_cache_writes_total")) >= 6);
  const other = await serve(t, sharing(store.url, "--kv-disk", temporaryFolder(t)));
  const found = await ask(other, wish("One morning,"));
  assert.ok(found.cached > 0);
  assert.deepEqual(found.choices, cold.choices);
  server.child.kill("SIGKILL");
  await server.exited;
  await say(store, ["FLUSHALL"]);
  const restarted = await serve(t, sharing(store.url, "--kv-disk", folder));
  const restored = await ask(restarted, wish("One morning,"));
  assert.ok(restored.cached > 0, "the disk has it");
  assert.deepEqual(restored.choices, cold.choices);
});

test("a Redis that is killed, and comes back, costs misses", async (t) => {
  const store = await redis(t);
  const { server, cold } = await filled(t, store);
  store.child.kill("SIGKILL");
  await store.exited;
  const other = await serve(t, sharing(store.url));
  assert.deepEqual((await ask(other, wish("One morning,"))).choices, cold.choices);
  await eventually("it is logged", () => /is left alone for a while/.test(other.errors));
  assert.ok((await metric(other.url, "braid_redis_cache_failures_total")) >= 1);
  for (const one of [server, other]) assert.equal((await ask(one, wish("One evening,"))).choices.length, 1);
  await redis(t, [], store.socket);
  let salt = 0;
  await eventually("it is written to again", async () => {
    await ask(other, wish("One night,", { cache_salt: `${salt++}`, max_tokens: 1 }));
    return (await keys(store)).length > 0;
  }, 120);
});

test("a Redis that is stopped costs its time once, and no answer", async (t) => {
  const store = await redis(t);
  const { cold } = await filled(t, store);
  const other = await serve(t, hasty("50ms", store.url));
  store.child.kill("SIGSTOP");
  try {
    for (let i = 0; i < 3; ++i) assert.deepEqual((await ask(other, wish("One morning,"))).choices, cold.choices);
    await eventually("it is logged", () => /is left alone for a while: it does not answer in time/.test(other.errors));
  } finally {
    store.child.kill("SIGCONT");
  }
});

test("a full Redis takes nothing and is read on", async (t) => {
  const store = await redis(t, ["--maxmemory-policy", "noeviction"]);
  const { cold } = await filled(t, store);
  await say(store, ["CONFIG", "SET", "maxmemory", "1mb"]);
  const other = await serve(t, sharing(store.url));
  const found = await ask(other, wish("One morning,"));
  assert.ok(found.cached > 0);
  assert.deepEqual(found.choices, cold.choices);
  await ask(other, wish("One evening,", { cache_salt: "new" }));
  await eventually("it is logged", () => /takes no block: it answers OOM/.test(other.errors));
  assert.ok((await metric(other.url, "braid_redis_cache_write_errors_total")) >= 1);
});

test("garbage costs a miss, and is thrown away", async (t) => {
  const store = await redis(t);
  const { cold } = await filled(t, store);
  const known = await keys(store);
  for (const garbage of [(key) => ["SET", key, "garbage"], (key) => ["SETRANGE", key, "5000", "garbage"], (key) => ["APPEND", key, "garbage"], (key) => ["SET", key, ""]]) {
    await say(store, ...known.map(garbage));
    const other = await serve(t, sharing(store.url));
    const answer = await ask(other, wish("One morning,"));
    assert.equal(answer.cached, 0);
    assert.deepEqual(answer.choices, cold.choices);
    assert.ok((await metric(other.url, "braid_redis_cache_read_errors_total")) >= 1);
    await eventually("it is logged", () => /is damaged or belongs to other tokens/.test(other.errors));
  }
  await say(store, ...known.map((key) => ["DEL", key]), ...known.map((key) => ["LPUSH", key, "of another type"]));
  const other = await serve(t, sharing(store.url));
  assert.deepEqual((await ask(other, wish("One morning,"))).choices, cold.choices);
});

test("the password is used and never told", async (t) => {
  const store = await redis(t, ["--requirepass", "open sesame"]);
  const url = (password) => store.url.replace("unix://", `unix://:${encodeURIComponent(password)}@`) + "?db=1";
  const right = await serve(t, ["--kv-disk-read", "always", "--kv-memory", "64M", "--no-warmup", "--log-level", "debug"], { env: { BRAID_KV_REDIS: url("open sesame") } });
  const cold = await ask(right, wish("One morning,"));
  await eventually("blocks are written", async () => (await metric(right.url, "braid_redis_cache_writes_total")) >= 6);
  const wrong = await serve(t, sharing(url("swordfish"), "--log-level", "debug"));
  assert.deepEqual((await ask(wrong, wish("One morning,"))).choices, cold.choices);
  await eventually("it is logged", () => /refuses the user or the password \(WRONGPASS\)/.test(wrong.errors));
  for (const server of [right, wrong])
    assert.doesNotMatch(server.errors + server.lines.join("\n"), /sesame|swordfish/);
});

test("a conversation of a server that is drained goes on elsewhere", async (t) => {
  const store = await redis(t);
  const first = await serve(t, sharing(store.url, "--kv-disk-write", "evict"));
  const turn = await ask(first, wish("One morning,"));
  assert.equal((await keys(store)).length, 0, "it is in RAM alone");
  first.child.kill("SIGTERM");
  assert.deepEqual(await first.exited, { code: 0, signal: null });
  assert.ok((await keys(store)).length >= 6);
  const next = wish(`One morning,${turn.choices[0].text} And then`);
  const other = await serve(t, sharing(store.url));
  const found = await ask(other, next);
  assert.ok(found.cached > 0, "nothing was found");
  const alone = await serve(t, ["--kv-memory", "64M", "--no-warmup"]);
  assert.deepEqual(found.choices, (await ask(alone, next)).choices);
});

test("a server ends while its Redis hangs", async (t) => {
  const store = await redis(t);
  const server = await serve(t, sharing(store.url, "--kv-disk-write", "evict", "--drain-timeout", "1s"));
  await ask(server, wish("One morning,"));
  store.child.kill("SIGSTOP");
  try {
    server.child.kill("SIGTERM");
    assert.deepEqual(await server.exited, { code: 0, signal: null });
  } finally {
    store.child.kill("SIGCONT");
  }
});

test("mistakes are told without the password", async (t) => {
  for (const [args, sentence] of [[["--kv-redis", "redis://:swordfish@cache:many"], /the port is no number/], [["--kv-redis", "rediss://:swordfish@cache"], /TLS is not spoken/],
    [["--kv-redis", "redis://cache", "--prefix-cache", "off"], /--kv-redis contradicts --prefix-cache off/]]) {
    const { code, stderr } = await braid(t, ["serve", ...args]);
    assert.notEqual(code, 0);
    assert.match(stderr, sentence);
    assert.doesNotMatch(stderr, /swordfish/);
  }
});
