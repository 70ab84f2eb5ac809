// The real coding agents with the commands of docs/agents.md: a home of their own, no key, and no way out of this machine.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { metrics } from "./support/client.mjs";
import { longModel, run, serve, serveScript, sourceFolder, temporaryFolder } from "./support/processes.mjs";

const agents = path.join(import.meta.dirname, "agents");
const page = readFileSync(path.join(sourceFolder, "docs/agents.md"), "utf8");
const [codexCommand, claudeCommand] = [...page.matchAll(/```sh\n([^]*?)```/g)].map((block) => block[1]);
const codexConfig = page.match(/```toml\n([^]*?)```/)[1];

if (!existsSync(path.join(agents, "node_modules/.bin/codex")))
  execFileSync("npm", ["ci", "--no-audit", "--no-fund", "--no-update-notifier"], { cwd: agents, stdio: "inherit" });

const documentedUrl = "http://127.0.0.1:8000";

// A home without anything but the page's settings, and a folder to work in.
function newHome(t, url) {
  const home = temporaryFolder(t);
  mkdirSync(path.join(home, "work"));
  mkdirSync(path.join(home, ".codex"));
  writeFileSync(path.join(home, ".codex/config.toml"), codexConfig.replaceAll(documentedUrl, url));
  return home;
}

function ask(t, command, url, home = newHome(t, url)) {
  const env = {
    PATH: `${path.join(agents, "node_modules/.bin")}:${process.env.PATH}`, HOME: home,
    HTTP_PROXY: "http://127.0.0.1:9", HTTPS_PROXY: "http://127.0.0.1:9", NO_PROXY: "127.0.0.1",
  };
  return run(t, "sh", ["-c", command.replaceAll(documentedUrl, url)], { cwd: path.join(home, "work"), env });
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

// The small model would not call these tools, so a script answers in its place: calls that the agents carry out, until a prompt holds
// their results, which no earlier one can.
const call = (name, args) => `I do it.\n<tool_call>\n${JSON.stringify({ name, arguments: args })}\n</tool_call>`;
const shell = "echo written for braid > note.txt; cat note.txt | tr a-z A-Z";

const agentsAtWork = [
  { name: "Codex", command: codexCommand.replace("say hello", "write the note"), tool: call("exec_command", { cmd: shell }),
    again: codexCommand.replace("codex exec", "codex exec resume --last").replace("--sandbox danger-full-access", "").replace("say hello", "and now?") },
  { name: "Claude Code", command: claudeCommand.replace("claude", "claude --allowedTools Bash,Write").replace("say hello", "write the note"),
    tool: call("Bash", { command: shell, description: "Write the note" }),
    again: claudeCommand.replace("claude", "claude --continue").replace("say hello", "and now?") },
];

for (const { name, command, tool, again } of agentsAtWork) {
  test(`${name}: carries a call out, reads its result, and remembers it in the next turn`, async (t) => {
    const server = await serveScript(t, [
      { when: "and now?", say: "The note stands as it was." },
      { when: "WRITTEN FOR BRAID", say: "The note is written." },
      { when: "write the note", say: tool },
    ]);
    const home = newHome(t, server.url);
    const first = await ask(t, command, server.url, home);
    assert.equal(first.code, 0, first.stdout + first.stderr);
    assert.match(first.stdout, /The note is written\./);
    assert.equal(readFileSync(path.join(home, "work/note.txt"), "utf8"), "written for braid\n");
    const second = await ask(t, again, server.url, home);
    assert.equal(second.code, 0, second.stdout + second.stderr);
    assert.match(second.stdout, /The note stands as it was\./);
  });
}
