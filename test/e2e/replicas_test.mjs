// Several servers behind nginx with the file that deploy/ has for it: conversations find the server that has their beginning, one that leaves
// or is killed takes nothing with it but the streams that it was sending, and no answer is another one than it would be alone. The soak takes
// 40 seconds; of five minutes, and with a Redis:
//   REPLICAS_SECONDS=300 BRAID_BINARY=build/release/braid BRAID_NGINX=/usr/sbin/nginx BRAID_REDIS=redis-server node --test test/e2e/replicas_test.mjs
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { collect, eventually, events, metric, post } from "./support/client.mjs";
import { balance, Conversation, hit_rate } from "./support/replicas.mjs";
import { name_server } from "./support/name_server.mjs";
import { freePort, longModel, serve } from "./support/processes.mjs";
import { redis } from "./support/redis.mjs";

const seconds = Number(process.env.REPLICAS_SECONDS ?? 40);
const options = ["--kv-memory", "64M", "--threads", "1"];
// A minute for a Redis: what is tested here is not how fast this machine is.
const sharing = (store) => ["--kv-redis", store.url, "--kv-redis-timeout", "60s", "--kv-disk-read", "always"];
const has_redis = Boolean(process.env.BRAID_REDIS);
// Whether nginx looks the names of servers up again: from 1.27.3 on.
const [, major, minor, patch] = spawnSync(process.env.BRAID_NGINX, ["-v"], { encoding: "utf8" }).stderr.match(/(\d+)\.(\d+)\.(\d+)/).map(Number);
const looks_again = major * 1e6 + minor * 1e3 + patch >= 1_027_003;

async function replicas(t, count, args = options) {
  const model = longModel(t);
  const ports = [];
  for (let i = 0; i < count; ++i) ports.push(await freePort());
  const start = (i) => serve(t, [model, "--alias", `replica-${i}`, ...args], { port: ["--port", String(ports[i])] });
  const servers = [];
  for (let i = 0; i < count; ++i) servers.push(await start(i));
  return { servers, ports, start };
}

const chat = (url, body) => post(`${url}/v1/chat/completions`, body);

test("conversations find their beginning: nine of ten tokens that one server would have found are found by four", async (t) => {
  const { ports } = await replicas(t, 4);
  const { url } = await balance(t, ports);
  const work = { count: 24, turns: 5, at_once: 2 };
  const shared = await hit_rate(url, work);
  const { servers: [alone] } = await replicas(t, 1);
  const whole = await hit_rate(alone.url, work);
  t.diagnostic(`hit rate: ${shared.toFixed(3)} with four, ${whole.toFixed(3)} with one`);
  assert.ok(whole > 0.5, `${whole}`);
  assert.ok(shared >= 0.9 * whole, `${shared} with four, ${whole} with one`);
});

test("all dialects' requests are known by what they begin with, and others by X-Braid-Prefix", async (t) => {
  const { ports } = await replicas(t, 2);
  const { url } = await balance(t, ports);
  const at = async (path, body, headers = {}) => {
    const response = await post(url + path, { max_tokens: 1, ...body }, { headers: { "Content-Type": "application/json", ...headers } });
    const answer = await response.json();
    assert.equal(response.status, 200, JSON.stringify(answer));
    return answer.model;
  };
  const both = new Set();
  for (let i = 0; i < 8; ++i) {
    const user = { role: "user", content: `Story ${i}: "quoted" {braces}` };
    const more = [user, { role: "assistant", content: "Yes." }, { role: "user", content: "And then?" }];
    const first = await at("/v1/chat/completions", { messages: [user] });
    assert.equal(await at("/v1/chat/completions", { temperature: 0, messages: more, stop: ["user"] }), first);
    assert.equal(await at("/v1/messages", { system: "Be short.", messages: more }), await at("/v1/messages", { messages: [user] }));
    assert.equal(await at("/api/chat", { messages: more, stream: false }), await at("/api/chat", { messages: [user], stream: false }));
    const prompt = `${i} and ${"then ".repeat(90)}`;
    assert.equal(await at("/v1/completions", { prompt }), await at("/v1/completions", { seed: 3, prompt: `${prompt} the end`, temperature: 0 }));
    assert.equal(await at("/v1/responses", { input: [user], max_output_tokens: 1, max_tokens: undefined }),
      await at("/v1/responses", { input: more, max_output_tokens: 2, max_tokens: undefined }));
    assert.equal(await at("/v1/completions", { prompt: "a" }, { "X-Braid-Prefix": `p${i}` }), await at("/v1/completions", { prompt: "b" }, { "X-Braid-Prefix": `p${i}` }));
    both.add(first);
  }
  assert.equal(both.size, 2);
});

test("who finds a server overloaded goes to the one with the fewest", async (t) => {
  const { servers, ports } = await replicas(t, 2, [...options, "--max-batch", "1", "--max-waiting", "1"]);
  const { url } = await balance(t, ports);
  const stop = new AbortController();
  const long = { ...new Conversation(0).body(), max_tokens: 20_000, stream: true };
  const streams = [];
  for (let i = 0; i < 2; ++i) streams.push(await fetch(`${url}/v1/chat/completions`, {
    method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ ...long, max_tokens: long.max_tokens + i }), signal: stop.signal }));
  const first = (await events(streams[0])[Symbol.asyncIterator]().next()).value.model;
  const other = await (await chat(url, new Conversation(0).body())).json();
  assert.notEqual(other.model, first);
  stop.abort();
  for (const server of servers) await eventually("nothing runs", async () => (await metric(server.url, "braid_sequences_decoding")) === 0);
});

test("the conversations of a server that leaves go on, and no request is lost", async (t) => {
  const { servers, ports } = await replicas(t, 3, [...options, "--drain-delay", "1s"]);
  const { url } = await balance(t, ports);
  const all = Array.from({ length: 12 }, (_, number) => new Conversation(number));
  const places = new Map();
  let turns = 0;
  const hold = (conversation, count) => (async () => {
    for (let i = 0; i < count; ++i) {
      const response = await chat(url, conversation.body());
      const answer = await response.json();
      assert.equal(response.status, 200, JSON.stringify(answer));
      conversation.take(answer.choices[0].message.content);
      places.set(conversation, answer.model);
      ++turns;
    }
  })();
  await Promise.all(all.map((conversation) => hold(conversation, 2)));
  const leaving = places.get(all[0]);
  const going_on = Promise.all(all.map((conversation) => hold(conversation, 6)));
  const server = servers[Number(leaving.split("-")[1])];
  server.child.kill("SIGTERM");
  await going_on;
  await server.exited;
  await Promise.all(all.map((conversation) => hold(conversation, 2)));
  assert.equal(turns, 12 * 10);
  assert.notEqual(places.get(all[0]), leaving);
});

test("a replica that comes back at another address is found by its name, and has its conversations", { skip: !looks_again && "nginx is older than 1.27.3" }, async (t) => {
  const model = longModel(t);
  const port = await freePort();
  const names = new Map();
  const start = async (i, address) => {
    const server = await serve(t, [model, "--alias", `replica-${i}`, "--host", address, ...options], { port: ["--port", String(port)] });
    names.set(`replica-${i}.test`, address);
    return server;
  };
  const servers = [await start(0, "127.0.0.10"), await start(1, "127.0.0.11")];
  const resolver = await name_server(t, names);
  const { url } = await balance(t, [0, 1], (text) => `resolver 127.0.0.1:${resolver} valid=1s ipv6=off;\n` +
    text.replace(/server 127\.0\.0\.1:(\d+)( .*);/g, (_, i, rest) => `server replica-${i}.test:${port}${rest} resolve;`));
  const all = Array.from({ length: 16 }, (_, number) => new Conversation(number));
  const places = async () => Promise.all(all.map(async (conversation) => {
    const response = await chat(url, conversation.body({ max_tokens: 1 }));
    const answer = await response.json();
    assert.equal(response.status, 200, JSON.stringify(answer));
    return answer.model;
  }));
  let before;
  await eventually("both are found", async () => new Set(before = await places()).size === 2, 60);
  servers[1].child.kill("SIGKILL");
  await servers[1].exited;
  assert.deepEqual(new Set(await places()), new Set(["replica-0"]));
  await start(1, "127.0.0.12");
  await eventually("all are where they were", async () => JSON.stringify(await places()) === JSON.stringify(before), 60);
});

test("with a Redis that all share a drained server's conversations go on elsewhere from it, and its death costs misses", { skip: !has_redis }, async (t) => {
  const store = await redis(t);
  const { servers, ports } = await replicas(t, 3, [...options, ...sharing(store), "--drain-delay", "1s"]);
  const { url } = await balance(t, ports);
  const all = Array.from({ length: 12 }, (_, number) => new Conversation(number));
  const held = [];  // what was asked and answered
  const turn = async (conversation) => {
    const messages = conversation.messages;
    const response = await chat(url, conversation.body());
    const answer = await response.json();
    assert.equal(response.status, 200, JSON.stringify(answer));
    const { content } = answer.choices[0].message;
    held.push({ messages, content });
    conversation.take(content);
    Object.assign(conversation, { place: answer.model, prompt: answer.usage.prompt_tokens, cached: answer.usage.prompt_tokens_details.cached_tokens });
  };
  const hold = async (count) => { for (let i = 0; i < count; ++i) await Promise.all(all.map(turn)); };
  const number_of = (place) => Number(place.split("-")[1]);
  await hold(3);

  const leaving = all[0].place;
  const moved = all.filter(({ place }) => place === leaving);
  const before = moved.map(({ prompt }) => prompt);
  servers[number_of(leaving)].child.kill("SIGTERM");
  assert.deepEqual(await servers[number_of(leaving)].exited, { code: 0, signal: null });
  const others = servers.filter((_, i) => i !== number_of(leaving));
  const from_redis = async () => (await Promise.all(others.map(async ({ url: at }) => (await (await fetch(`${at}/v1/cache/stats`)).json()).tokens.disk_hits))).reduce((sum, tokens) => sum + tokens, 0);
  const found_before = await from_redis();
  await Promise.all(moved.map(turn));
  for (const [i, { place, cached }] of moved.entries()) {
    assert.notEqual(place, leaving);
    assert.ok(cached > before[i] - 32, `${cached} of the ${before[i]} tokens that the server had that left`);
  }
  const found = (await from_redis()) - found_before;
  t.diagnostic(`${moved.length} conversations moved, ${found} tokens came from the Redis`);
  assert.ok(found > 0, "nothing came from the Redis");

  const going_on = hold(2);
  store.child.kill("SIGKILL");
  await store.exited;
  await going_on;
  await hold(1);
  await eventually("its death was noticed", async () => (await Promise.all(others.map(({ url: at }) => metric(at, "braid_redis_cache_failures_total")))).some((count) => count > 0));
  const { servers: [alone] } = await replicas(t, 1);
  for (const { messages, content } of held) {
    const answer = await (await chat(alone.url, { ...all[0].body(), messages })).json();
    assert.equal(answer.choices[0].message.content, content, "another answer than from a server alone");
  }
});

test("a soak in which servers are killed: no wrong answer, and nothing is lost but the streams of the one that was killed", { timeout: (seconds + 240) * 1000 }, async (t) => {
  let store = has_redis ? await redis(t) : null;
  const { servers, ports, start } = await replicas(t, 4, [...options, ...(has_redis ? sharing(store) : [])]);
  const { url } = await balance(t, ports);
  const wishes = Array.from({ length: 24 }, (_, number) => new Conversation(number).body({ max_tokens: 8 + number * 3, return_token_ids: true, temperature: number % 2 }));
  const solo = [];
  for (const wish of wishes) solo.push((await collect(await chat(servers[0].url, { ...wish, stream: true }))).tokens);
  const kills = new Map();  // how often each server was killed
  const tally = { whole: 0, streamed: 0, broken: 0, kills: 0, redis_kills: 0 };
  const ask_whole = async (i) => {
    const response = await chat(url, wishes[i]);
    const answer = await response.json().catch(() => assert.fail(`status ${response.status}, no JSON`));
    assert.equal(response.status, 200, JSON.stringify(answer));
    assert.deepEqual(answer.choices[0].token_ids, solo[i]);
    ++tally.whole;
  };
  const ask_stream = async (i) => {
    const kills_before = new Map(kills);
    const response = await chat(url, { ...wishes[i], stream: true });
    assert.equal(response.status, 200, response.status === 200 ? "" : await response.text());
    const tokens = [];
    let place = null;  // the server that answers, once it is known
    let is_done = false;
    try {
      for await (const event of events(response)) {
        if (event === "[DONE]") { is_done = true; continue; }
        assert.equal(event.error, undefined, JSON.stringify(event));
        place = event.model;
        tokens.push(...(event.choices[0]?.token_ids ?? []));
      }
    } catch (error) {
      if (error instanceof assert.AssertionError && !/ended inside an event/.test(error.message)) throw error;
    }
    assert.deepEqual(tokens, solo[i].slice(0, tokens.length));  // what came was right
    if (is_done) {
      assert.equal(tokens.length, solo[i].length);
      ++tally.streamed;
      return;
    }
    const was_killed = [...kills].some(([name, count]) => (place ?? name) === name && count > (kills_before.get(name) ?? 0));
    assert.ok(was_killed, `a stream of ${place} broke, and that server was not killed`);
    ++tally.broken;
  };
  const until = Date.now() + seconds * 1000;
  const failures = [];
  const client = async (number) => {
    for (let i = number; Date.now() < until && failures.length === 0; i = (i + 7) % wishes.length)
      await (i % 3 === 0 ? ask_whole(i) : ask_stream(i)).catch((error) => failures.push(error));
  };
  const killer = async () => {
    for (let i = 0; Date.now() < until && failures.length === 0; i = (i + 1) % servers.length) {
      await new Promise((resolve) => setTimeout(resolve, 2000));
      const name = `replica-${i}`;
      kills.set(name, (kills.get(name) ?? 0) + 1);
      ++tally.kills;
      servers[i].child.kill("SIGKILL");
      await servers[i].exited;
      servers[i] = await start(i);
      if (!has_redis || i !== servers.length - 1) continue;
      store.child.kill("SIGKILL");
      await store.exited;
      ++tally.redis_kills;
      store = await redis(t, [], store.socket);
    }
  };
  await Promise.all([killer(), ...Array.from({ length: 8 }, (_, number) => client(number))]);
  t.diagnostic(JSON.stringify(tally));
  for (const failure of failures.slice(0, 3)) console.error(failure);
  assert.equal(failures.length, 0);
  assert.ok(tally.kills > 0 && tally.whole > 0 && tally.streamed > 0);
});
