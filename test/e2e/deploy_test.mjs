// What deploy/ has for those who watch the server: each name in it is a figure that the server has.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { run, serve, sourceFolder, temporaryFolder } from "./support/processes.mjs";

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
