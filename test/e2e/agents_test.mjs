// The real coding agents with the commands of docs/agents.md: a home of their own, no key, and no way out of this machine.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { metrics } from "./support/client.mjs";
import { run, serve, sourceFolder, temporaryFolder } from "./support/processes.mjs";

const agents = path.join(import.meta.dirname, "agents");
const page = readFileSync(path.join(sourceFolder, "docs/agents.md"), "utf8");
const [codexCommand, claudeCommand] = [...page.matchAll(/```sh\n([^]*?)```/g)].map((block) => block[1]);
const codexConfig = page.match(/```toml\n([^]*?)```/)[1];

if (!existsSync(path.join(agents, "node_modules/.bin/codex")))
  execFileSync("npm", ["ci", "--no-audit", "--no-fund", "--no-update-notifier"], { cwd: agents, stdio: "inherit" });

// The embedded model with a longer context written into its metadata.
function longModel(t) {
  const model = readFileSync(path.join(sourceFolder, "models/demo-q8_0.gguf"));
  const value = model.indexOf(".context_length") + ".context_length".length + 4;
  assert.equal(model.readUInt32LE(value), 1024);
  model.writeUInt32LE(65536, value);
  const file = path.join(temporaryFolder(t), "long.gguf");
  writeFileSync(file, model);
  return file;
}

function ask(t, command, url) {
  const home = temporaryFolder(t);
  mkdirSync(path.join(home, "work"));
  mkdirSync(path.join(home, ".codex"));
  writeFileSync(path.join(home, ".codex/config.toml"), codexConfig.replaceAll("http://127.0.0.1:8000", url));
  const env = {
    PATH: `${path.join(agents, "node_modules/.bin")}:${process.env.PATH}`, HOME: home,
    HTTP_PROXY: "http://127.0.0.1:9", HTTPS_PROXY: "http://127.0.0.1:9", NO_PROXY: "127.0.0.1",
  };
  return run(t, "sh", ["-c", command.replaceAll("http://127.0.0.1:8000", url)], { cwd: path.join(home, "work"), env });
}

for (const [name, command] of [["Codex", codexCommand], ["Claude Code", claudeCommand]]) {
  test(`${name}: one answer`, async (t) => {
    const server = await serve(t, [longModel(t), "--alias", "braid-demo"]);
    const answer = await ask(t, command, server.url);
    assert.equal(answer.code, 0, answer.stdout + answer.stderr);
    assert.ok(answer.stdout.length > 0);
    const figures = await metrics(server.url);
    const route = name === "Codex" ? "/responses" : "/messages";
    const served = [...figures].filter(([key]) => key.includes(`"${route}"`) && key.includes('"200"'));
    assert.ok(served.some(([, count]) => count > 0), JSON.stringify([...figures.keys()].filter((key) => key.includes(route))));
  });

  test(`${name}: a prompt that is too long says so`, async (t) => {
    const server = await serve(t);
    const answer = await ask(t, command, server.url);
    assert.notEqual(answer.code, 0);
    assert.match(answer.stdout + answer.stderr, /too long|context/i);
  });
}
