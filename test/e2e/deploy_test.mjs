// What deploy/ and scripts/manual have for those who run the server, held against the server.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { braidBinary, run, serve, sourceFolder, temporaryFolder } from "./support/processes.mjs";

const deploy = join(sourceFolder, "deploy");
const read = (...names) => readFileSync(join(deploy, ...names), "utf8");
const board = JSON.parse(read("grafana", "braid.json"));
const expressions = board.panels.flatMap((panel) => panel.targets.map((target) => target.expr));
const alerts = read("prometheus", "alerts.yml");

const names_in = (text) => new Set([...text.matchAll(/\b(?:braid|process)_[a-z_]+/g)].map(([name]) => name));

test("every name of the board and of the alerts is one of /metrics", async (t) => {
  const server = await serve(t, ["--kv-memory", "64M", "--kv-disk", temporaryFolder(t)]);
  const metrics = await (await fetch(`${server.url}/metrics`)).text();
  const known = names_in(metrics.replace(/^#.*$/gm, ""));
  for (const name of names_in(expressions.join("\n") + alerts.replace(/^ +(summary|description):.*$/gm, "")))
    assert.ok(known.has(name), `${name} is no figure of the server`);
});

test("panels of the board lie beside each other", () => {
  const places = board.panels.map(({ gridPos: { x, y } }) => `${x},${y}`);
  assert.equal(new Set(places).size, places.length);
  assert.equal(new Set(board.panels.map(({ id }) => id)).size, places.length);
});

test("promtool takes the alerts, their tests, the board's expressions and the server's own text", { skip: !process.env.BRAID_PROMTOOL }, async (t) => {
  const promtool = async (args, options, codes = [0]) => {
    const { code, stdout, stderr } = await run(t, process.env.BRAID_PROMTOOL, args, options);
    assert.ok(codes.includes(code), stdout + stderr);
  };
  await promtool(["check", "rules", join(deploy, "prometheus/alerts.yml")]);
  await promtool(["test", "rules", join(deploy, "prometheus/alerts_test.yml")]);
  await promtool(["check", "config", join(deploy, "prometheus/prometheus.yml")]);
  const rules = { groups: [{ name: "board", rules: expressions.map((expr, i) => ({
    record: `panel:${i}`, expr: expr.replaceAll("$__rate_interval", "5m").replaceAll("$instance", ".*") })) }] };
  const file = join(temporaryFolder(t), "board.yml");
  writeFileSync(file, JSON.stringify(rules));
  await promtool(["check", "rules", file]);
  const server = await serve(t, ["--kv-memory", "64M"]);
  // 3: it would have named some of them otherwise (milliseconds, which clients and boards know by now).
  await promtool(["check", "metrics"], { input: await (await fetch(`${server.url}/metrics`)).text() }, [0, 3]);
});

test("bash completes commands, options and names of models", async (t) => {
  const { stdout: definition } = await run(t, braidBinary, ["completion", "bash"]);
  const complete = async (...words) => {
    const script = `${definition}\nCOMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _braid; echo "\${COMPREPLY[@]}"`;
    return (await run(t, "bash", ["-c", script, "bash", "braid", ...words])).stdout.trim().split(" ");
  };
  assert.deepEqual(await complete("qu"), ["quantize"]);
  assert.deepEqual(await complete("serve", "--max-ba"), ["--max-batch", "--max-batch-tokens"]);
});

test("the manual has every option that --help tells of, and nothing that is no roff", async (t) => {
  const file = join(temporaryFolder(t), "braid.1");
  const made = await run(t, join(sourceFolder, "scripts/manual"), [braidBinary, file]);
  assert.equal(made.code, 0, made.stderr);
  const page = readFileSync(file, "utf8");
  const help = (await run(t, braidBinary, ["serve", "--help"])).stdout;
  const options = [...help.matchAll(/^ *(--[a-z-]+)/gm)].map(([, name]) => name.replaceAll("-", "\\-"));
  assert.ok(options.length > 50);
  for (const option of options) assert.ok(page.includes(option), option);
  assert.doesNotMatch(page, /^['.](?!TH|SH|SS|nf|fi|B |I |TP|TQ)/m);
});

test("the service may do little: systemd-analyze gives it at most 2.5 of 10", { skip: !process.env.BRAID_SYSTEMD_ANALYZE }, async (t) => {
  const { code, stdout, stderr } = await run(t, process.env.BRAID_SYSTEMD_ANALYZE,
    ["security", "--no-pager", "--offline=true", "--threshold=25", join(deploy, "systemd/braid.service")]);
  assert.equal(code, 0, stdout + stderr);
  assert.match(stdout, /Overall exposure level for braid.service: [012]\.\d/);
});

test("what ends a server has the time that the server takes for it", () => {
  const seconds = (text, pattern) => Number(text.match(pattern)[1]);
  const pods = read("kubernetes", "braid.yaml");
  const drain = seconds(pods, /"--drain-delay", "(\d+)s"/) + seconds(pods, /"--drain-timeout", "(\d+)s"/);
  assert.ok(seconds(pods, /terminationGracePeriodSeconds: (\d+)/) >= drain + 5);
  const shipped = seconds(read("braid.yaml"), /^drain-timeout: (\d+)s/m);
  assert.ok(seconds(read("systemd", "braid.service"), /^TimeoutStopSec=(\d+)/m) >= shipped + 5);
  assert.ok(seconds(read("openrc", "braid"), /^retry="TERM\/(\d+)/m) >= shipped + 5);
  assert.ok(10 > seconds(read("docker", "Dockerfile"), /"--drain-timeout", "(\d+)s"/), "Docker kills after 10 s");
});
