// `braid config`, and where the options of a server come from.
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { eventually } from "./support/client.mjs";
import { braid, run, serve, sourceFolder, temporaryFolder } from "./support/processes.mjs";

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
  options("log-level: info\nmax-batch: 7\ndrain-timeout: 3s\n");
  assert.deepEqual(await (await reload()).json(), { object: "reload", api_keys: 0, changed: ["drain-timeout", "log-level"], waiting: ["max-batch"] });
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

test("the shipped file is right", async (t) => {
  const { code, stderr } = await braid(t, ["config", "check", join(sourceFolder, "deploy/braid.yaml")]);
  assert.equal(code, 0, stderr);
});
