// One model computed by several processes of an MPI job: the bits of one, and what happens when one of them is lost.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { braid, serve, sourceFolder, temporaryFolder } from "./support/processes.mjs";
import { collect, eventually, metric, post } from "./support/client.mjs";
import { safetensors, write_adapter, write_dora, write_rows } from "./support/adapters.mjs";
import { byNumber, isThere, processorTime, ranksOf, restarted } from "./support/ranks.mjs";
import { recurrentModel } from "./support/recurrent_model.mjs";
import { keys, redis } from "./support/redis.mjs";

const demo = path.join(sourceFolder, "models/demo-q8_0.gguf");
const modest = ["--kv-memory", "64MiB", "--threads", "2"];

const wish = (i, more = {}) => ({
  model: "demo-q8_0", prompt: `The story of fox number ${i}. Once upon a time`, max_tokens: 40, temperature: i % 2 ? 0.8 : 0, seed: i,
  logprobs: 2, ignore_eos: true, return_token_ids: true, ...more,
});
const unloaded = async (server) => assert.equal((await post(`${server.url}/api/generate`, { model: "demo-q8_0", keep_alive: 0 })).status, 200);
const answers = async (server, count) => Promise.all([...Array(count).keys()].map(async (i) => {
  const response = await post(`${server.url}/v1/completions`, wish(i));
  const { choices: [choice], error } = await response.json();
  assert.ok(!error, JSON.stringify(error));
  return { text: choice.text, tokens: choice.token_ids, logprobs: choice.logprobs.token_logprobs };
}));
test("any number of ranks gives the bits of one process", async (t) => {
  const expected = await answers(await serve(t, [demo, ...modest]), 8);
  for (const [ranks, stages] of [[2, 1], [4, 1], [2, 2], [3, 3], [4, 2]]) {
    const server = await serve(t, [demo, ...modest, "--ranks", String(ranks), "--stages", String(stages)]);
    assert.equal(ranksOf(server).length, ranks);
    const layout = `${ranks} ranks, ${stages} stages`;
    assert.deepEqual(await answers(server, 8), expected, layout);
    assert.deepEqual(await answers(server, 8), expected, `${layout}, from the prefix cache`);
    const figures = await (await fetch(`${server.url}/metrics`)).text();
    for (const what of ["compute", "exchange"])
      for (let rank = 0; rank < ranks; ++rank)
        assert.ok(Number(new RegExp(`^braid_rank_${what}_seconds_total\\{rank="${rank}"\\} (\\S+)$`, "m").exec(figures)[1]) > 0, figures);
  }
});

test("ranks take of this machine's memory what all of them do, and each its part", async (t) => {
  const of = async (...args) => {
    const server = await serve(t, [demo, ...modest, "--max-batch", "8", ...args]);
    const { data: [model] } = await (await fetch(`${server.url}/v1/models`)).json();
    const own = ranksOf(server).map((pid) => Number(/^RssAnon:\s*(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))[1]));
    return { told: model.status.memory_bytes, own };
  };
  const [alone, two, four] = [await of(), await of("--ranks", "2"), await of("--ranks", "4")];
  // Each has half of the weights and of the pool, embeddings, and a workspace of its own.
  assert.ok(two.told > alone.told && two.told < 2 * alone.told, `${two.told} bytes of two ranks, ${alone.told} of one process`);
  // Of the weights alone, two have 17.0 MiB each, and four 10.6.
  assert.ok(Math.max(...four.own) + 4096 < Math.min(...two.own), `${four.own} KiB of four, ${two.own} of two`);
});

test("ranks that stay on memory nodes are threads of the server, and give the same bits", async (t) => {
  const expected = await answers(await serve(t, [demo, ...modest]), 4);
  const server = await serve(t, [demo, ...modest, "--ranks", "2", "--ranks-on-nodes"]);
  assert.deepEqual(ranksOf(server), [], "no process is another one's");
  assert.deepEqual(await answers(server, 4), expected);
  assert.ok(await metric(server.url, 'braid_rank_compute_seconds_total{rank="1"}') > 0);
});

test("states of a recurrent model are saved and found where the ranks have them", async (t) => {
  const options = [recurrentModel(t, "lfm2"), "--kv-memory", "16M", "--threads", "2", "--state-checkpoints", "16", "--no-warmup"];
  const ask = async (server, seed) => {
    const body = { prompt: "Once upon a time", max_tokens: 60, temperature: 1, ignore_eos: true, logprobs: 2, return_token_ids: true, seed };
    const { choices, error } = await (await post(`${server.url}/v1/completions`, body)).json();
    assert.ok(!error, JSON.stringify(error));
    return choices;
  };
  const [alone, ranks] = [await serve(t, options), await serve(t, [...options, "--ranks", "2"])];
  for (const seed of [1, 2, 1]) assert.deepEqual(await ask(ranks, seed), await ask(alone, seed), `seed ${seed}`);
});

test("what one process has written to disk is found by ranks, and the other way round", async (t) => {
  const folder = temporaryFolder(t);
  const options = (disk, more) => [demo, ...modest, "--kv-disk", path.join(folder, disk), "--kv-disk-write", "through", "--kv-disk-read", "always", ...more];
  const long = { prompt: `${"The fox went on and on. ".repeat(40)} Once upon a time`, max_tokens: 8 };
  const ask = async (server) => {
    const { choices: [choice], usage, error } = await (await post(`${server.url}/v1/completions`, wish(2, long))).json();
    assert.ok(!error, JSON.stringify(error));
    return { tokens: choice.token_ids, logprobs: choice.logprobs.token_logprobs, cached: usage.prompt_tokens_details.cached_tokens };
  };
  for (const [disk, writer, reader] of [["a", [], ["--ranks", "2"]], ["b", ["--ranks", "2"], []], ["c", ["--ranks", "2"], ["--ranks", "4"]]]) {
    const first = await serve(t, options(disk, writer));
    const expected = await ask(first);
    await eventually("blocks are written", async () => (await metric(first.url, "braid_disk_cache_writes_total")) >= 6);
    first.child.kill("SIGTERM");
    await first.exited;
    const second = await serve(t, options(disk, reader));
    const again = await ask(second);
    assert.deepEqual([again.tokens, again.logprobs], [expected.tokens, expected.logprobs], disk);
    assert.ok(again.cached >= 96, `${again.cached} tokens were found`);
    assert.ok(await metric(second.url, "braid_prefix_cache_disk_hit_tokens_total") >= 96);
    second.child.kill("SIGTERM");
    await second.exited;
  }
});

test("what one process has put in a Redis is found by ranks, and the other way round", { skip: process.env.BRAID_REDIS ? false : "no redis-server" }, async (t) => {
  const long = { prompt: `${"The fox went on and on. ".repeat(40)} Once upon a time`, max_tokens: 8 };
  for (const [writer, reader] of [[[], ["--ranks", "2"]], [["--ranks", "2"], []]]) {
    const store = await redis(t);
    const options = ["--kv-redis", store.url, "--kv-redis-timeout", "60s", "--kv-disk-read", "always"];
    const answers = [];
    for (const more of [writer, reader]) {
      const server = await serve(t, [demo, ...modest, ...options, ...more]);
      const { choices: [choice], usage } = await (await post(`${server.url}/v1/completions`, wish(2, long))).json();
      answers.push([choice.token_ids, choice.logprobs.token_logprobs]);
      const found = usage.prompt_tokens_details.cached_tokens;
      if (more === reader) assert.ok(found >= 96, `${found} tokens were found`);
      await eventually("blocks are written", async () => (await keys(store)).length >= 6);
      server.child.kill("SIGTERM");
      await server.exited;
    }
    assert.deepEqual(answers[1], answers[0]);
  }
});

test("adapters and newer weights are on all ranks, as they are on one process", async (t) => {
  const folder = temporaryFolder(t);
  ["one", "two"].forEach((name, i) => write_adapter(path.join(folder, name), i + 1));
  write_rows(path.join(folder, "rows"), 4);
  write_dora(path.join(folder, "lengths"), 3);  // whose magnitudes follow from weights, of which each rank has a part
  const options = [demo, ...modest, "--adapter-dir", folder, "--lora", `one=${path.join(folder, "one")}`];
  const [alone, ranks] = [await serve(t, options), await serve(t, [...options, "--ranks", "2"])];
  const both = async (what) => assert.deepEqual(await what(ranks), await what(alone));
  const asks = (fields) => async (server) => {
    const response = await post(`${server.url}/v1/completions`, wish(1, { model: undefined, ...fields }));
    const answer = await response.json();
    assert.equal(response.status, 200, JSON.stringify(answer));
    return [answer.choices, answer.system_fingerprint];
  };
  const loads = async (server, fields) => {
    const response = await post(`${server.url}/v1/load_lora_adapter`, fields);
    return [response.status, response.status === 200 ? "" : (await response.json()).error.message];
  };
  assert.notDeepEqual(await asks({ model: "one" })(ranks), await asks({})(ranks));
  await both(asks({ model: "one" }));
  await both((server) => loads(server, { lora_name: "two", lora_path: path.join(folder, "two") }));
  await both(asks({ adapter: [{ name: "one", scale: 0.5 }, { name: "two", scale: -0.75 }] }));
  await both((server) => loads(server, { lora_name: "lengths", lora_path: path.join(folder, "lengths") }));
  await both((server) => loads(server, { lora_name: "rows", lora_path: path.join(folder, "rows") }));
  assert.notDeepEqual((await asks({ model: "rows" })(ranks))[0], (await asks({})(ranks))[0], "an embedding's and a head's rows do something");
  await both((server) => Promise.all(["one", "two", "lengths", "rows", "demo-q8_0"].map((model) => asks({ model })(server))));

  const norm = (value) => safetensors({ "output_norm.weight": { shape: [512], values: Array(512).fill(0).map((_, i) => value + i / 512) } }, { partial: "true" });
  const update = async (server, body) => {
    const response = await fetch(`${server.url}/update_weights`, { method: "POST", headers: { "Content-Type": "application/octet-stream" }, body });
    const { revision, error } = await response.json();
    return [response.status, revision, error?.message];
  };
  const [before, lengths_of_file] = [await asks({})(ranks), await asks({ model: "lengths" })(ranks)];
  const stream = post(`${ranks.url}/v1/completions`, wish(1, { max_tokens: 300, stream: true })).then(collect);
  await both((server) => update(server, norm(0.5)));
  assert.equal((await stream).error, null, "a stream goes on beside the newer weights");
  assert.notDeepEqual(await asks({})(ranks), before);
  for (const model of ["one", "demo-q8_0"]) await both(asks({ model }));
  await both((server) => update(server, norm(0.25)));
  await both(asks({ model: "two" }));
  const lengths = await asks({ model: "lengths" })(ranks);
  const matrix = { shape: [512, 512], values: Array.from({ length: 512 * 512 }, (_, i) => Math.sin(i) / 16) };
  await both((server) => update(server, safetensors({ "blk.3.attn_q.weight": matrix }, { partial: "true" })));
  await both(asks({ model: "lengths" }));
  assert.notDeepEqual(await asks({ model: "lengths" })(ranks), lengths, "they were made anew");
  const checked = await post(`${ranks.url}/weight_checker`, {});
  assert.equal(checked.status, 400);
  assert.match((await checked.json()).error.message, /each rank of this model has parts of its tensors/);
  await both((server) => update(server, safetensors({ nothing: { shape: [1], values: [1] } }, { partial: "true" })));
  await both(asks({}));

  // Their revision, which ends the fingerprint, is that of the second norm and the matrix.
  const lost = ranksOf(ranks);
  process.kill(lost[1], "SIGKILL");
  await restarted(ranks, lost);
  for (const model of ["one", "two", "lengths", "demo-q8_0"]) await both(asks({ model }));
  const { data: [facts] } = await (await fetch(`${ranks.url}/weight_info`)).json();
  assert.equal(facts.updates, 3);
  await unloaded(ranks);
  assert.deepEqual(await asks({})(ranks), before, "who unloads the model gets the weights of its file");
  assert.deepEqual(await asks({ model: "lengths" })(ranks), lengths_of_file, "and the magnitudes for them");
});

// An update either reaches all ranks or none, and nothing is said to be of a revision that it is not of: whichever rank is lost, and when.
test("a rank that is lost in the middle of an update", async (t) => {
  const folder = temporaryFolder(t);
  ["one", "two"].forEach((name, i) => write_adapter(path.join(folder, name), i + 1));
  const options = [demo, ...modest, "--adapter-dir", folder, "--lora", `one=${path.join(folder, "one")}`];
  const [alone, server] = [await serve(t, options), await serve(t, [...options, "--ranks", "2"])];
  const ask = async (from, model) => {
    const response = await post(`${from.url}/v1/completions`, wish(1, { model, logprobs: 1 }));
    const { choices, system_fingerprint, error } = await response.json();
    assert.ok(!error, JSON.stringify(error));
    return { fingerprint: system_fingerprint, tokens: choices[0].token_ids, logprobs: choices[0].logprobs.token_logprobs };
  };
  const update_base = async (from) => (await fetch(`${from.url}/update_weights`, {
    method: "POST", headers: { "Content-Type": "application/octet-stream" },
    body: safetensors({ "output_norm.weight": { shape: [512], values: Array(512).fill(0).map((_, i) => 0.5 + i / 512) } }, { partial: "true" }),
  })).json();
  const update_adapter = async (from, name) => (await post(`${from.url}/update_adapter_weights`, { adapter: "one", path: name })).json();

  // What one process answers on each revision.
  const known = new Map();
  const note = async () => {
    for (const model of ["one", "demo-q8_0"]) {
      const answer = await ask(alone, model);
      known.set(answer.fingerprint, answer);
    }
  };
  await note();
  const { revision: other } = await update_adapter(alone, "two");
  await note();
  await update_base(alone);
  await note();
  await update_adapter(alone, "one");
  await note();
  assert.equal(known.size, 6);

  const fingerprints = async () => {
    const all = [];
    for (const model of ["one", "demo-q8_0"]) {
      const answer = await ask(server, model);
      assert.deepEqual(answer, known.get(answer.fingerprint), `${model} answers as one process on ${answer.fingerprint}`);
      all.push(answer.fingerprint);
    }
    return all;
  };
  const first = await fingerprints();
  // It hangs until the others have what comes, or goes whenever that may be.
  for (const [hangs, after_ms] of [[true, 300], [false, 10]]) {
    for (const update of [update_base, (from) => update_adapter(from, "two")]) {
      for (const rank of [0, 1]) {
        const when = `rank ${rank}, ${hangs ? "which hangs" : `after ${after_ms} ms`}`;
        const before = byNumber(ranksOf(server));
        const stream = post(`${server.url}/v1/completions`, wish(1, { model: "one", max_tokens: 900, stream: true })).then(collect);
        await eventually("it runs", async () => (await metric(server.url, "braid_sequences_decoding")) === 1);
        if (hangs) process.kill(before[rank], "SIGSTOP");
        const updated = update(server);
        await Promise.race([updated, new Promise((resolve) => setTimeout(resolve, after_ms))]);
        process.kill(before[rank], "SIGKILL");
        const { revision, error } = await updated;
        const { tokens } = await stream;
        await restarted(server, before);
        assert.deepEqual(tokens.slice(0, 40), known.get(first[0]).tokens.slice(0, tokens.length), `${when}: a stream stays on its revision`);
        const now = await fingerprints();
        if (error) assert.deepEqual(now, first, `${when}: what was there is there`);
        if (error) continue;
        if (update === update_base) {
          assert.ok(now[1].endsWith(revision), `${when}: ${now[1]}`);
          await unloaded(server);  // which brings the file's weights
          assert.deepEqual(await fingerprints(), first, when);
          continue;
        }
        assert.equal(revision, other);  // all ranks had it, or the next group got it
        assert.ok(now[0].endsWith(other), `${when}: ${now[0]}`);
        assert.ok(!(await update_adapter(server, "one")).error, when);
      }
    }
  }
  assert.equal((await update_adapter(server, "two")).revision, other);
  const [newer] = await fingerprints();
  assert.ok(newer.endsWith(other));
  const before = ranksOf(server);
  process.kill(before[0], "SIGKILL");
  await restarted(server, before);
  assert.deepEqual((await fingerprints())[0], newer, "an adapter's update outlives the group");
});

test("a rank that is lost ends what runs, and the group serves again", async (t) => {
  const server = await serve(t, [demo, ...modest, "--ranks", "2"]);
  const expected = await answers(server, 4);
  for (const which of [0, 1]) {
    const before = ranksOf(server);
    const streams = [...Array(4).keys()].map(async (i) => collect(await post(`${server.url}/v1/completions`, wish(i, { max_tokens: 900, stream: true }))));
    await eventually("four run", async () => (await metric(server.url, "braid_sequences_decoding")) === 4);
    process.kill(before[which], "SIGKILL");
    for (const ended of await Promise.all(streams)) assert.match(ended.error.message, /is loaded again: rank \d of 2 is lost/);
    assert.match(await (await fetch(`${server.url}/readyz`)).text(), /loaded again|ready/);
    await eventually("ready again", async () => (await fetch(`${server.url}/readyz`)).status === 200, 120);
    assert.deepEqual(await answers(server, 4), expected, `after rank ${which} was lost`);
    const after = ranksOf(server);
    assert.equal(after.length, 2);
    assert.ok(after.every((pid) => !before.includes(pid)), "all ranks are new");
  }
});

test("one that is lost while nobody asks is noticed at once", async (t) => {
  const server = await serve(t, [demo, ...modest, "--ranks", "2"]);
  const expected = await answers(server, 2);
  for (const which of [0, 1]) {
    const before = ranksOf(server);
    process.kill(before[which], "SIGKILL");
    await restarted(server, before);
    assert.deepEqual(await answers(server, 2), expected);
  }
});

test("a rank that hangs is lost after its time, and /readyz says so until the group serves again", async (t) => {
  const server = await serve(t, [demo, ...modest, "--ranks", "2", "--ranks-timeout", "2s", "--step-timeout", "1s"]);
  const expected = await answers(server, 2);
  const before = ranksOf(server);
  const stream = post(`${server.url}/v1/completions`, wish(0, { max_tokens: 900, stream: true })).then(collect);
  await eventually("it runs", async () => (await metric(server.url, "braid_sequences_decoding")) === 1);
  process.kill(before[1], "SIGSTOP");
  assert.match((await stream).error.message, /is loaded again: rank \d/);
  let readyWithOldRanks = 0;
  await eventually("ready again", async () => {
    const { status } = await fetch(`${server.url}/readyz`);
    if (status === 200 && ranksOf(server).length < 2) ++readyWithOldRanks;
    return status === 200;
  }, 120);
  assert.equal(readyWithOldRanks, 0);
  assert.ok(ranksOf(server).every((pid) => !before.includes(pid)), "the one that hung is gone");
  assert.deepEqual(await answers(server, 2), expected);
});

test("a server that is ended while its ranks are lost, or hang, ends, and so do they", async (t) => {
  for (const signal of ["SIGKILL", "SIGSTOP"]) {
    const server = await serve(t, [demo, ...modest, "--ranks", "2", "--drain-timeout", "1s"]);
    const ranks = ranksOf(server);
    const stream = post(`${server.url}/v1/completions`, wish(0, { max_tokens: 900, stream: true })).then(collect, () => {});
    await eventually("it runs", async () => (await metric(server.url, "braid_sequences_decoding")) === 1);
    process.kill(ranks[1], signal);
    server.child.kill("SIGTERM");
    await server.exited;
    await stream;
    await eventually("no rank is left", () => !ranks.some(isThere), 60);
  }
});

test("an idle group uses no processor time", async (t) => {
  const server = await serve(t, [demo, ...modest, "--ranks", "2"]);
  await answers(server, 2);
  const ranks = ranksOf(server);
  const before = ranks.map(processorTime);
  await new Promise((resolve) => setTimeout(resolve, 1000));
  ranks.forEach((pid, i) => assert.ok(processorTime(pid) - before[i] <= 2, "hundredths of a second"));
});

test("a plan says what each layout takes", async (t) => {
  const { code, stdout, stderr } = await braid(t, ["plan", demo, "--hosts", "4", "--bandwidth", "1GB", "--latency", "20", "--memory-bandwidth", "10GB"]);
  assert.equal(code, 0, stderr);
  const rows = new Map(stdout.split("\n").filter((line) => /--ranks|one process/.test(line)).map((line) => [/^(one process|--ranks \d+(?: --stages \d+)?)/.exec(line)[1], line.split(/ {2,}/)]));
  assert.deepEqual([...rows.keys()], ["one process", "--ranks 2", "--ranks 2 --stages 2", "--ranks 3 --stages 3", "--ranks 4", "--ranks 4 --stages 2", "--ranks 4 --stages 4"]);
  const mebibytes = (name) => Number(/([\d.]+) MiB/.exec(rows.get(name)[1])[1]);
  assert.ok(mebibytes("--ranks 4") < mebibytes("--ranks 2") && mebibytes("--ranks 2") < mebibytes("one process"), stdout);
  assert.equal(Number(rows.get("one process").at(-1)), 0, "one process has no network");
  assert.ok(Number(rows.get("--ranks 2 --stages 2").at(-1)) < Number(rows.get("--ranks 2").at(-1)), "stages exchange less");
});

test("what cannot be divided is refused with what can", async (t) => {
  const refused = async (...options) => {
    const { code, stderr } = await braid(t, ["serve", "--port", "0", ...modest, ...options]);
    assert.notEqual(code, 0);
    return stderr;
  };
  assert.match(await refused("--ranks", "2"), /file or folder/);
  const hosts = path.join(temporaryFolder(t), "hosts");
  writeFileSync(hosts, "localhost slots=2\n");
  const elsewhere = ["serve", "--port", "0", demo, "--ranks", "2", "--hostfile", hosts];
  assert.match((await braid(t, elsewhere)).stderr, /--hostfile: say with --kv-memory/);
  assert.match(await refused(demo, "--ranks", "4", "--stages", "3"), /4 ranks cannot be divided/);
  assert.match(await refused(demo, "--stages", "2"), /--stages are for --ranks/);
  assert.match(await refused(demo, "--ranks", "2", "--stages", "2", "--kv-disk", "/nowhere"), /no stage has a whole block/);
  assert.match(await refused(demo, "--ranks", "3"), /cannot be divided so; 1, 2, 4 ranks can|cannot be divided/);
});
