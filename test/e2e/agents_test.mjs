// The real coding agents with the commands of docs/agents.md: a home of their own, no key, and no way out of this machine.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { collect, eventually, metrics, post } from "./support/client.mjs";
import { freePort, longModel, run, serve, serveScript, sourceFolder, temporaryFolder } from "./support/processes.mjs";

const agents = path.join(import.meta.dirname, "agents");
const page = readFileSync(path.join(sourceFolder, "docs/agents.md"), "utf8");
const shown = (name, kind) => page.split(`\n## ${name}\n`)[1].split("\n## ")[0].match(new RegExp(`\`\`\`${kind}\n([^]*?)\`\`\``))[1];

if (!["codex", "claude", "opencode", "cline", "cn"].every((name) => existsSync(path.join(agents, "node_modules/.bin", name))))
  execFileSync("npm", ["ci", "--no-audit", "--no-fund", "--no-update-notifier"], { cwd: agents, stdio: "inherit" });

const documentedUrl = "http://127.0.0.1:8000";
const settings = {
  ".codex/config.toml": shown("Codex CLI", "toml"),
  "work/opencode.json": shown("opencode", "json"),
  ".continue/config.yaml": shown("Continue", "yaml"),
};

// Ends the processes that have this home in their environment, which are those that stay when an agent's command has ended, as Cline's
// hub does; says whether there was none.
function end_what_stays(home) {
  const stays = (pid) => {
    try {
      if (!readFileSync(`/proc/${pid}/environ`, "latin1").split("\0").includes(`HOME=${home}`)) return false;
      process.kill(Number(pid), "SIGKILL");
      return true;
    } catch { return false; }  // it has ended meanwhile, or is another user's
  };
  return !readdirSync("/proc").filter((name) => /^\d+$/.test(name)).filter(stays).length;
}

// A home without anything but the page's settings, a folder to work in, and a port of its own for what agents run beside it.
async function newHome(t, url) {
  const home = { hub: String(await freePort()) };
  t.after(() => eventually("nothing is left running", () => end_what_stays(home.folder)));
  home.folder = temporaryFolder(t);
  for (const [name, text] of Object.entries(settings)) {
    mkdirSync(path.dirname(path.join(home.folder, name)), { recursive: true });
    writeFileSync(path.join(home.folder, name), text.replaceAll(documentedUrl, url));
  }
  return home;
}

async function ask(t, command, url, home) {
  const { folder, hub } = home ?? await newHome(t, url);
  const env = {
    PATH: `${path.join(agents, "node_modules/.bin")}:${process.env.PATH}`, HOME: folder, CLINE_HUB_PORT: hub,
    HTTP_PROXY: "http://127.0.0.1:9", HTTPS_PROXY: "http://127.0.0.1:9", NO_PROXY: "127.0.0.1",
  };
  return run(t, "sh", ["-c", command.replaceAll(documentedUrl, url)], { cwd: path.join(folder, "work"), env });
}

// The small model would not call these tools, so a script answers in its place: calls that the agents carry out, until a prompt holds
// their results, which no earlier one can.
const call = (name, args) => `I do it.\n<tool_call>\n${JSON.stringify({ name, arguments: args })}\n</tool_call>`;
const shell = "echo written for braid > note.txt; cat note.txt | tr a-z A-Z";
const changed = (command, ...changes) => changes.reduce((text, [from, to]) => {
  assert.ok(text.includes(from), `${from} in ${text}`);
  return text.replace(from, to);
}, command);

const commands = Object.fromEntries(["Codex CLI", "Claude Code", "opencode", "Cline", "Continue"].map((name) => [name, shown(name, "sh")]));
// By agent: the route that it asks, its call of a shell, what it needs to work alone, and how it goes on with a conversation (Cline does
// that in a terminal only).
const kAgents = {
  "Codex CLI": { route: "/responses", tool: call("exec_command", { cmd: shell }),
    again: [["codex exec", "codex exec resume --last"], ["--sandbox danger-full-access", ""]] },
  "Claude Code": { route: "/messages", tool: call("Bash", { command: shell, description: "Write the note" }),
    alone: [["claude --model", "claude --allowedTools Bash,Write --model"]], again: [["claude --model", "claude --continue --model"]] },
  opencode: { route: "/chat/completions", tool: call("bash", { command: shell, description: "Write the note" }),
    again: [["opencode run", "opencode run --continue"]] },
  Cline: { route: "/chat/completions", tool: call("run_commands", { commands: [shell] }) },
  Continue: { route: "/chat/completions", tool: call("Bash", { command: shell }), again: [["cn --auto", "cn --auto --resume"]] },
};

test("each agent of the page whose commands are a block is run here", () => {
  const sections = page.split("\n## ").slice(1).filter((section) => section.includes("```sh\n"));
  assert.deepEqual(sections.map((section) => section.split("\n")[0]), Object.keys(kAgents));
  for (const section of sections) assert.equal(section.match(/^```sh$/gm).length, 1, section);
});

for (const [name, { route, tool, alone = [], again }] of Object.entries(kAgents)) {
  const command = commands[name];
  test(`${name}: one answer`, async (t) => {
    const server = await serve(t, [longModel(t), "--alias", "braid-demo"]);
    const answer = await ask(t, command, server.url);
    assert.equal(answer.code, 0, answer.stdout + answer.stderr);
    assert.ok(answer.stdout.length > 0);
    const figures = await metrics(server.url);
    const served = [...figures].filter(([key]) => key.includes(`"${route}"`) && key.includes('"200"'));
    assert.ok(served.some(([, count]) => count > 0), JSON.stringify([...figures.keys()].filter((key) => key.includes(route))));
  });

  test(`${name}: a prompt that is too long says so`, async (t) => {
    const server = await serve(t, ["--alias", "braid-demo"]);
    const answer = await ask(t, command, server.url);
    assert.notEqual(answer.code, 0);
    assert.match(answer.stdout + answer.stderr, /too long|context/i);
  });

  test(`${name}: carries a call out, reads its result${again ? ", and remembers it in the next turn" : ""}`, async (t) => {
    const server = await serveScript(t, [
      { when: "and now?", say: "The note stands as it was." },
      { when: "WRITTEN FOR BRAID", say: "The note is written." },
      { when: "write the note", say: tool },
    ]);
    const home = await newHome(t, server.url);
    const first = await ask(t, changed(command, ...alone, ["say hello", "write the note"]), server.url, home);
    assert.equal(first.code, 0, first.stdout + first.stderr);
    assert.match(first.stdout, /The note is written\./);
    assert.equal(readFileSync(path.join(home.folder, "work/note.txt"), "utf8"), "written for braid\n");
    if (!again) return;
    const second = await ask(t, changed(command, ...again, ["say hello", "and now?"]), server.url, home);
    assert.equal(second.code, 0, second.stdout + second.stderr);
    assert.match(second.stdout, /The note stands as it was\./);
  });
}

// aider asks through a library for Python: chats whose examples are turns, an edit as text in the answer, now and then one function that
// must be called, and a word's worth of an answer to keep a prompt warm.
test("aider's requests are answered", async (t) => {
  const server = await serveScript(t, [
    { when: "commit message", say: "fix: greet the world" },
    { when: "by the function", say: call("replace_lines", { explanation: "as asked", edits: [] }) },
    { when: "*SEARCH/REPLACE*", say: "greet.py\n```python\n<<<<<<< SEARCH\nhi\n=======\nhello\n>>>>>>> REPLACE\n```" },
  ]);
  const send = (fields) => post(`${server.url}/v1/chat/completions`, { model: "braid-demo", temperature: 0, ...fields });
  const messages = [
    { role: "system", content: "Act as an expert software developer.\nAlways answer with *SEARCH/REPLACE* blocks." },
    { role: "user", content: "Change get_factorial() to use math.factorial" }, { role: "assistant", content: "Ok." },
    { role: "user", content: [{ type: "text", text: "Here are the files:\n\ngreet.py\n```\nhi\n```" }] }, { role: "assistant", content: "Ok." },
    { role: "user", content: "Say hello instead." },
  ];
  const edit = await collect(await send({ messages, stream: true }));
  assert.match(edit.text, /^greet\.py\n```python\n<<<<<<< SEARCH\nhi\n=======\nhello\n>>>>>>> REPLACE\n```$/);
  const said = await (await send({ messages: [{ role: "system", content: "You write a commit message." }, { role: "user", content: "- hi\n+ hello" }], stream: false })).json();
  assert.equal(said.choices[0].message.content, "fix: greet the world");
  const parameters = { type: "object", required: ["explanation", "edits"], properties: { explanation: { type: "string" }, edits: { type: "array", items: { type: "object" } } } };
  const called = await (await send({ messages: [{ role: "user", content: "Say hello by the function." }], stream: false,
    tools: [{ type: "function", function: { name: "replace_lines", description: "create or update one or more files", parameters } }],
    tool_choice: { type: "function", function: { name: "replace_lines" } } })).json();
  assert.equal(called.choices[0].message.tool_calls[0].function.name, "replace_lines");
  assert.deepEqual(JSON.parse(called.choices[0].message.tool_calls[0].function.arguments), { explanation: "as asked", edits: [] });
  assert.equal((await send({ messages, stream: false, max_tokens: 1 })).status, 200);
});
