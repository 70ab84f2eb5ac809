// `braid config`, and where the options of a server come from.
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { eventually, metric, post } from "./support/client.mjs";
import { braid, freePort, longModel, run, serve, sourceFolder, temporaryFolder } from "./support/processes.mjs";

test("a new file is right, is not written over, and can be served with", async (t) => {
  const file = join(temporaryFolder(t), "braid.yaml");
  assert.equal((await braid(t, ["config", "init", file])).code, 0);
  const text = readFileSync(file, "utf8");
  assert.match(text, /^batching:\n/m);
  assert.deepEqual((await braid(t, ["config", "check", file])).stdout, `${file} is right`);
  const again = await braid(t, ["config", "init", file]);
  assert.equal(again.code, 1);
  assert.match(again.stderr, /it is there already/);
  assert.equal(readFileSync(file, "utf8"), text);
  await serve(t, ["--config", file, "--kv-memory", "64M"]);
});

test("a mistake is told with its line and the nearest key", async (t) => {
  const file = join(temporaryFolder(t), "braid.yaml");
  writeFileSync(file, "batching:\n  max-batch: 4\n  max-waitng: 7\n");
  for (const args of [["config", "check", file], ["serve", "--config", file]]) {
    const { code, stderr } = await braid(t, args);
    assert.equal(code, 2);
    assert.match(stderr, /braid\.yaml:3: there is no option 'max-waitng': is 'max-waiting' meant\?/);
  }
});

test("a variable that is nearly an option's is warned of", async (t) => {
  const server = await serve(t, ["--no-model"], { env: { BRAID_MAX_BACH: "4" } });
  server.child.kill("SIGTERM");
  await server.exited;
  assert.match(server.errors, /the variable BRAID_MAX_BACH sets nothing: is BRAID_MAX_BATCH meant\?/);
});

test("the command line comes before the environment, and that before the file", async (t) => {
  const file = join(temporaryFolder(t), "braid.yaml");
  writeFileSync(file, "alias: of-file\nmodel:\n  kv-memory: 64M\nanswers:\n  max-tokens: 3\n");
  const ids = async (args, env) => {
    const server = await serve(t, ["--config", file, ...args], { env });
    return (await (await fetch(`${server.url}/v1/models`)).json()).data.map((model) => model.id);
  };
  assert.deepEqual(await ids([], {}), ["of-file"]);
  assert.deepEqual(await ids([], { BRAID_ALIAS: "of-environment" }), ["of-environment"]);
  assert.deepEqual(await ids(["--alias", "of-line"], { BRAID_ALIAS: "of-environment" }), ["of-line"]);
  const { stdout } = await braid(t, ["config", "show", file], { env: { ...process.env, BRAID_MAX_TOKENS: "5" } });
  assert.match(stdout, /^alias: 'of-file' {2}# file$/m);
  assert.match(stdout, /^max-tokens: '5' {2}# environment$/m);
  assert.match(stdout, /^block-size: 16 {2}# default$/m);
});

test("SIGHUP and POST /v1/admin/reload take what may change, and tell what may not", async (t) => {
  const file = join(temporaryFolder(t), "braid.yaml");
  const options = (text) => writeFileSync(file, `kv-memory: 64M\n${text}`);
  options("log-level: info\n");
  const server = await serve(t, ["--config", file]);
  const logged = async (pattern) => {
    while (!pattern.test(server.errors)) await new Promise((resolve) => server.child.stderr.once("data", resolve));
  };
  options("log-level: warning\nmax-batch: 7\n");
  server.child.kill("SIGHUP");
  await logged(/options that changed: log-level/);
  await logged(/wait for a restart: max-batch/);
  server.child.kill("SIGUSR1");  // a line at level info, which is not written now
  options("log-level: info\nmax-bach: 7\n");
  const reload = () => fetch(`${server.url}/v1/admin/reload`, { method: "POST" });
  const refused = await reload();
  assert.equal(refused.status, 500);
  assert.match((await refused.json()).error.message, /braid\.yaml:3: there is no option 'max-bach': is 'max-batch' meant\?; the options of before stay/);
  options("log-level: info\nmax-batch: 7\ndrain-timeout: 3s\nrequests-per-minute: 9\n");
  assert.deepEqual(await (await reload()).json(),
    { object: "reload", api_keys: 0, changed: ["drain-timeout", "log-level", "requests-per-minute"], waiting: ["max-batch"] });
  assert.equal((await post(`${server.url}/v1/completions`, { prompt: "Once", max_tokens: 1 })).headers.get("x-ratelimit-limit-requests"), "9");
  assert.doesNotMatch(server.errors, /SIGUSR1/);
  server.child.kill("SIGUSR1");
  await logged(/SIGUSR1/);
});

test("--log-file is opened anew at SIGUSR1, and --pid-file is there while the server is", async (t) => {
  const folder = temporaryFolder(t);
  const [log, pid] = [join(folder, "braid.log"), join(folder, "braid.pid")];
  const text = (file) => (existsSync(file) ? readFileSync(file, "utf8") : "");
  writeFileSync(log, "of before\n");
  const server = await serve(t, ["--no-model", "--log-file", log, "--pid-file", pid]);
  assert.equal(text(pid), `${server.child.pid}\n`);
  server.child.kill("SIGUSR2");
  await eventually("a line of the log", () => /^of before\n.*SIGUSR2 is nothing to this server/.test(text(log)));
  renameSync(log, `${log}.1`);
  server.child.kill("SIGUSR1");
  await eventually("a line of the log", () => /SIGUSR1: ready|SIGUSR1: started without a model/.test(text(log)));
  assert.doesNotMatch(text(`${log}.1`), /SIGUSR1/);
  rmSync(log);
  mkdirSync(log);  // which cannot be opened: the file of before goes on
  server.child.kill("SIGUSR1");
  const { lines } = await (await fetch(`${server.url}/v1/admin/log`)).json();
  assert.match(lines.join("\n"), /SIGUSR2[^]*SIGUSR1/);
  assert.equal(server.errors, "");
  server.child.kill("SIGTERM");
  assert.deepEqual(await server.exited, { code: 0, signal: null });
  assert.equal(existsSync(pid), false);
  const refused = await braid(t, ["serve", "--no-model", "--port", "0", "--log-file", log]);
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /--log-file '.*braid\.log': Is a directory/);
});

test("a successor's --pid-file stays when its predecessor goes", async (t) => {
  const folder = temporaryFolder(t);
  const pid = join(folder, "pid");
  const args = ["--no-model", "--takeover", join(folder, "control"), "--pid-file", pid];
  const first = await serve(t, args);
  const second = await serve(t, args);
  await first.exited;
  assert.equal(readFileSync(pid, "utf8"), `${second.child.pid}\n`);
});

test("the shipped logrotate file moves the log away and has it opened anew", { skip: !process.env.BRAID_LOGROTATE }, async (t) => {
  const folder = temporaryFolder(t);
  const rules = join(folder, "rules");
  const shipped = readFileSync(join(sourceFolder, "deploy/logrotate/braid"), "utf8");
  writeFileSync(rules, shipped.replaceAll("/var/log/braid", folder).replaceAll("/run/braid", folder), { mode: 0o644 });
  const server = await serve(t, ["--no-model", "--log-file", join(folder, "braid.log"), "--pid-file", join(folder, "braid.pid")]);
  server.child.kill("SIGUSR2");
  await eventually("a line of the log", () => readFileSync(join(folder, "braid.log"), "utf8").includes("SIGUSR2"));
  const { code, stderr } = await run(t, process.env.BRAID_LOGROTATE, ["--force", "--state", join(folder, "state"), rules]);
  assert.equal(code, 0, stderr);
  await eventually("a line of the log", () => existsSync(join(folder, "braid.log")) && readFileSync(join(folder, "braid.log"), "utf8").includes("SIGUSR1"));
  assert.match(readFileSync(join(folder, "braid.log.1"), "utf8"), /SIGUSR2/);
});

// The settings of another server (docs/configuration.md): each has its effect under the name that it has here, or is refused.
const demo = join(sourceFolder, "models/demo-q8_0.gguf");
const stats = async (server) => (await fetch(`${server.url}/v1/cache/stats`)).json();
const complete = async (server, fields) => (await post(`${server.url}/v1/completions`, { prompt: "Once upon a time", ignore_eos: true, ...fields })).json();
const long_prompt = Array.from({ length: 300 }, (_, i) => 300 + i);
const with_file = (t, lines, args = []) => {
  const file = join(temporaryFolder(t), "braid.yaml");
  writeFileSync(file, lines.join("\n"));
  return serve(t, ["--config", file, ...args], { port: [] });
};

test("model, host and port", async (t) => {
  const port = await freePort();
  const server = await with_file(t, [`model: ${demo}`, "host: 127.0.0.2", `port: ${port}`, "kv-memory: 64M"]);
  assert.equal(server.url, `http://127.0.0.2:${port}`);
  assert.equal((await (await fetch(`${server.url}/v1/models`)).json()).data[0].id, "demo-q8_0");
  const missing = await braid(t, ["serve", "--config", "off", join(temporaryFolder(t), "none.gguf")]);
  assert.match(missing.stderr, /none\.gguf/);
});

test("block_size, num_blocks and kv_bits", async (t) => {
  const blocks = async (...lines) => (await stats(await with_file(t, ["port: 0", ...lines]))).blocks.total;
  const usual = await blocks("kv-memory: 32M", "kv-dtype: f16");
  assert.equal(await blocks("kv-memory: 64M", "kv-dtype: f16"), 2 * usual);
  assert.equal(await blocks("kv-memory: 32M", "kv-dtype: f16", "block-size: 32"), usual / 2);
  const small = await blocks("kv-memory: 32M", "kv-dtype: int8");
  assert.ok(small > 1.8 * usual && small < 2 * usual, `${small} blocks of int8 beside ${usual}`);
});

test("ssd_cache_dir, ssd_enabled and ssd_ttl_days", async (t) => {
  const folder = join(temporaryFolder(t), "kv");
  const disk = [`kv-disk: ${folder}`, "kv-disk-write: through", "kv-disk-read: always", "kv-memory: 64M", "port: 0"];
  const first = await with_file(t, disk);
  assert.equal((await complete(first, { prompt: long_prompt, max_tokens: 1 })).usage.prompt_tokens_details.cached_tokens, 0);
  await eventually("blocks are written", async () => (await stats(first)).disk.writes >= 10);
  const written = Date.now();
  first.child.kill("SIGTERM");
  await first.exited;
  await eventually("they are more than two seconds old", () => Date.now() > written + 3000);
  const found = async (ttl) => {
    const server = await with_file(t, [...disk, `kv-disk-ttl: ${ttl}`]);
    const { usage } = await complete(server, { prompt: long_prompt, max_tokens: 1 });
    server.child.kill("SIGKILL");
    await server.exited;
    return usage.prompt_tokens_details.cached_tokens;
  };
  assert.ok(await found("7d") > 0);
  assert.equal(await found("1s"), 0);
  assert.equal((await stats(await with_file(t, ["kv-memory: 64M", "port: 0"]))).disk, null);
});

test("max_batch_size, completion_batch_size and max_queue_size", async (t) => {
  const server = await with_file(t, [`model: ${longModel(t)}`, "kv-memory: 256M", "port: 0", "max-batch: 2", "max-waiting: 1", "speculate: 'off'"]);
  const phases = async () => (await (await fetch(`${server.url}/slots`)).json()).filter(({ request }) => request).map(({ phase }) => phase);
  const running = new AbortController();
  const ask = () => post(`${server.url}/v1/completions`, { prompt: "Once", max_tokens: 6000, ignore_eos: true, stream: true }, { signal: running.signal });
  const answers = [await ask(), await ask()];
  // A stream begins when its request waits: the third one would be one too many while the second still does.
  await eventually("two run", async () => (await phases()).filter((phase) => phase !== "waiting").length === 2);
  const third = ask();
  await eventually("the third one waits", async () => (await phases()).filter((phase) => phase === "waiting").length === 1);
  assert.equal((await phases()).length, 3);
  assert.equal((await ask()).status, 429);
  for (const { status } of answers) assert.equal(status, 200);
  running.abort();
  await assert.rejects(third.then((answer) => answer.text()));
});

test("prefill_batch_size and prefill_step_size", async (t) => {
  const steps = async (tokens) => {
    const server = await with_file(t, ["kv-memory: 64M", "port: 0", "max-batch: 8", `max-batch-tokens: ${tokens}`, "no-warmup: true"]);
    await complete(server, { prompt: long_prompt, max_tokens: 1 });
    return metric(server.url, "braid_engine_steps_total");
  };
  const [few, many] = [await steps(4096), await steps(32)];
  assert.ok(many >= 300 / 32 && few < many, `${few} steps, and ${many} of 32 tokens`);
});

test("max_kv_size and sequence_cache_size", async (t) => {
  const story = "Once upon a time, a brave fox named Luna lived in the castle. She loved her kite more than anything. ".repeat(4);
  const ask = async (...lines) => {
    const server = await with_file(t, ["kv-memory: 64M", "port: 0", ...lines]);
    const body = { prompt: story, max_tokens: 1, temperature: 0, logprobs: 3 };
    const first = await complete(server, body);
    return { logprob: first.choices[0].logprobs.token_logprobs[0], again: (await complete(server, body)).usage.prompt_tokens_details.cached_tokens };
  };
  const whole = await ask();
  const seen = await ask("max-kv-size: 32");
  const cold = await ask("prefix-cache: 'off'");
  assert.notEqual(seen.logprob, whole.logprob);
  assert.equal(cold.logprob, whole.logprob);
  assert.ok(whole.again > 0);
  assert.equal(cold.again, 0);
});

test("default_max_tokens, default_temperature and default_top_p", async (t) => {
  const server = await with_file(t, ["kv-memory: 64M", "port: 0", "max-tokens: 7", "temperature: 0.25", "top-p: 0.75"]);
  assert.equal((await complete(server, {})).usage.completion_tokens, 7);
  assert.equal((await complete(server, { max_tokens: 3 })).usage.completion_tokens, 3);
  const { params } = (await (await fetch(`${server.url}/props`)).json()).default_generation_settings;
  assert.deepEqual([params.temperature, params.top_p], [0.25, 0.75]);
});

test("adapter_path, kv_group_size and use_distributed are refused with what is possible", async (t) => {
  const file = join(temporaryFolder(t), "braid.yaml");
  for (const [setting, told] of [["adapter_path: a", /'lora: NAME=PATH'/], ["kv_group_size: 64", /a scale for 64 values/], ["use_distributed: true", /'ranks: N', with 'hostfile'/]]) {
    writeFileSync(file, setting);
    const { code, stderr } = await braid(t, ["serve", "--config", file]);
    assert.equal(code, 2);
    assert.match(stderr, told);
  }
});

test("the shipped file is right", async (t) => {
  const { code, stderr } = await braid(t, ["config", "check", join(sourceFolder, "deploy/braid.yaml")]);
  assert.equal(code, 0, stderr);
});
