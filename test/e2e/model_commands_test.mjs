// `braid pull, list, show, rm, cp, create, push, status` and so on, with a server and without one.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { braid, Process, braidBinary, endlessModel, run, serve, sourceFolder, temporaryFolder } from "./support/processes.mjs";
import { demo, digestOf, registry } from "./support/registries.mjs";

const demoFile = path.join(sourceFolder, "models/demo-q8_0.gguf");

// Runs commands on one data folder; each gives what it printed, or what it complained of where another code is meant.
function commands(t, data, env = {}) {
  return async (args, { code = 0, both = false, ...options } = {}) => {
    const ended = await braid(t, args, { env: { ...process.env, BRAID_DATA_DIR: data, ...env }, ...options });
    assert.equal(ended.code, code, `${args.join(" ")}: ${ended.stderr}${ended.stdout}`);
    if (both) return ended;
    return code === 0 ? ended.stdout : ended.stderr;
  };
}

function modelfile(t, text) {
  const file = path.join(temporaryFolder(t), "Modelfile");
  writeFileSync(file, text);
  return file;
}

// The same with and without a server.
async function manage(t, command) {
  await command(["create", "base", "-f", modelfile(t, `FROM ${demoFile}\nSYSTEM "Be brief."\nPARAMETER stop x\n`)]);
  await command(["create", "kind", "-f", "-"], { input: "FROM base\nPARAMETER temperature 0.5\n" });
  await command(["cp", "kind", "me/kinder:v1"]);
  assert.deepEqual((await command(["list", "--names"])).split("\n").sort(), ["base:latest", "kind:latest", "me/kinder:v1"]);
  assert.match(await command(["list"]), /^NAME +ID +SIZE +QUANTISATION +MODIFIED\n.*Q8_0/s);
  const listed = JSON.parse(await command(["ls", "kind", "--json"]));
  assert.deepEqual(listed.data.map((model) => model.id).sort(), ["kind:latest", "me/kinder:v1"]);
  assert.equal(listed.data[0].parent, "base:latest");
  assert.match(await command(["show", "kind"]), /architecture +llama[^]*System\nBe brief\./);
  assert.equal(JSON.parse(await command(["show", "kind", "--json"])).parameters, "stop x\ntemperature 0.5");
  const again = await command(["show", "kind", "--modelfile"]);
  await command(["create", "again", "-f", "-"], { input: again });
  assert.equal(JSON.parse(await command(["show", "again", "--json"])).system, "Be brief.");
  await command(["rm", "kind", "me/kinder:v1", "again"]);
  assert.equal(await command(["list", "--names"]), "base:latest");
  assert.match(await command(["show", "none"], { code: 4 }), /model 'none' not found/);
  assert.match(await command(["rm", "none"], { code: 4 }), /not found/);
  assert.match(await command(["create", "x", "-f", "-"], { input: "FROM ./none.gguf\n", code: 4 }), /there is no such file/);
  assert.match(await command(["create", "x", "-f", "-"], { input: "FORM base\n", code: 2 }), /line 1 of the Modelfile/);
  assert.match(await command(["create", "../x", "-f", "-"], { input: "FROM base\n", code: 2 }), /is no name of a model/);
}

test("without a server", async (t) => {
  const command = commands(t, temporaryFolder(t));
  await manage(t, command);
  assert.match(await command(["status"]), /^no server is running\n1 models in /);
  assert.equal(JSON.parse(await command(["status", "--json"])).server, null);
  assert.match(await command(["ps"], { code: 3 }), /no server is running/);
  assert.match(await command(["stop", "base"], { code: 3 }), /no server is running/);
});

test("through the server that has the folder open", async (t) => {
  const data = temporaryFolder(t);
  const server = await serve(t, [], { env: { BRAID_DATA_DIR: data } });
  const command = commands(t, data);
  await manage(t, command);
  const status = JSON.parse(await command(["status", "--json"]));
  assert.equal(status.server, server.url);
  assert.match(await command(["ps"]), /braid-demo .* forever$/);
  assert.match(await command(["list", "--host", "127.0.0.1:1"], { code: 3 }), /cannot be reached/);
});

test("a folder of weights, and one that is pulled and pushed", async (t) => {
  const source = await registry(t);
  source.put("library/demo:1b", demo());
  const command = commands(t, temporaryFolder(t), { BRAID_REGISTRY_MIRROR: source.url });
  const steps = (await command(["pull", "demo:1b", "--json"])).split("\n").map((line) => JSON.parse(line));
  assert.equal(steps.at(-1).status, "success");
  await command(["cp", "demo:1b", `${source.host}/me/demo`]);
  await command(["push", "--insecure", `http://${source.host}/me/demo`]);
  assert.ok(source.models.has("me/demo:latest"));
  assert.match(await command(["pull", "demo:2b"], { code: 4 }), /has no manifest/);
  const folder = temporaryFolder(t);
  mkdirSync(path.join(folder, "weights"));
  assert.match(await command(["create", "x", "-f", modelfile(t, `FROM ${folder}/weights\n`)], { code: 2 }), /give one of the two/);
});

test("Ctrl-C ends a pull, and the next one goes on", async (t) => {
  const source = await registry(t);
  source.put("library/demo:latest", demo());
  Object.assign(source.faults, { delay: 30, step: 256 * 1024 });
  const data = temporaryFolder(t);
  const env = { ...process.env, BRAID_DATA_DIR: data, BRAID_REGISTRY_MIRROR: source.url };
  const pull = new Process(t, braidBinary, ["pull", "demo", "--json"], { env });
  await pull.line(/"completed":[0-9]{7}/);
  pull.child.kill("SIGINT");
  assert.equal((await pull.exited).code, 130);
  source.faults.delay = 0;
  const before = source.requests.length;
  await commands(t, data, { BRAID_REGISTRY_MIRROR: source.url })(["pull", "demo"]);
  const range = source.requests.slice(before).find((request) => request.url.endsWith(digestOf(demo()))).range;
  assert.ok(!range.startsWith("bytes=0-"), range);
});

const question = "What is 17 + 25?";

async function chatBecomesModel(command) {
  const input = [question, "/set system Be kind.", "/set parameter num_predict 3", "/save model me/talk", "/load model none", "/load model me/talk", question].join("\n");
  const { stdout, stderr } = await command(["run", "base", "--temperature", "0"], { input, both: true });
  assert.match(stderr, /^braid: model 'none' not found[^\n]*$/m);
  const [first, second, ...more] = stdout.split("\n");
  assert.equal(first, "17 + 25 = 42.");
  assert.ok(second !== "" && second.length < first.length, `three tokens: ${second}`);
  assert.deepEqual(more, []);
  const shown = JSON.parse(await command(["show", "me/talk", "--json"]));
  assert.equal(shown.system, "Be kind.");
  assert.match(shown.parameters, /^num_predict 3$/m);
  assert.equal(shown.details.parent_model, "base:latest");
  assert.deepEqual(shown.messages, [{ role: "user", content: question }, { role: "assistant", content: first }]);
  const cut = await command(["run", "base", "--temperature", "0"], { input: `/set parameter stop =\n${question}\n/set parameter top_k much\n${question}\n`, both: true });
  assert.match(cut.stdout, /^17 \+ 25 (\n|$)/);
  assert.match(cut.stderr, /top_k/);
  const line = JSON.parse(await command(["run", "base", question, "--temperature", "0", "--json"]));
  assert.deepEqual([line.message, line.done], [{ role: "assistant", content: first }, true]);
  const again = await command(["run", "me/talk"], { input: `${question}\n/save model me/longer\n` });
  assert.deepEqual(JSON.parse(await command(["show", "me/longer", "--json"])).messages,
    [...shown.messages, { role: "user", content: question }, { role: "assistant", content: again }]);
}

// The same in the terminal's own process and through a server.
async function chat(command, data) {
  const said = await command(["run", "base", question, "--temperature", "0"]);
  assert.equal(said, "17 + 25 = 42.");
  const input = [question, "/show messages", "/save one", "/new", "/show messages", "/set system Be kind.", "/show system", "/load one",
    '"""', "Several", 'lines."""', "/set parameter num_predict 3", "/show parameters", "/save ../two", "/nonsense", "/bye", "never"].join("\n");
  const { stdout, stderr } = await command(["run", "base", "--temperature", "0"], { input, both: true });
  const lines = stdout.split("\n");
  assert.equal(lines[0], "17 + 25 = 42.");
  assert.deepEqual(lines.slice(1, 4), [`user: ${question}`, "assistant: 17 + 25 = 42.", "Be kind."]);
  assert.ok(lines.includes("num_predict 3"), stdout);
  assert.doesNotMatch(stdout, /never/);
  assert.match(stderr, /'\.\.\/two' is no name/);
  assert.match(stderr, /there is no command \/nonsense/);
  const kept = JSON.parse(readFileSync(path.join(data, "chats/one.json"), "utf8"));
  assert.deepEqual(kept.messages.map((message) => message.role), ["user", "assistant"]);
  await chatBecomesModel(command);
}

test("a chat with a model of the folder", async (t) => {
  const data = temporaryFolder(t);
  const command = commands(t, data);
  await command(["create", "base", "-f", "-"], { input: `FROM ${demoFile}\nPARAMETER repeat_penalty 1\n` });
  await chat(command, data);
  assert.match(await command(["run", "bass", "Hello there, you"], { code: 4 }), /neither a file nor a model 'bass'/);
});

test("a chat with a model of the server", async (t) => {
  const data = temporaryFolder(t);
  await serve(t, ["--kv-memory", "256M"], { env: { BRAID_DATA_DIR: data } });
  const command = commands(t, data);
  await command(["create", "base", "-f", "-"], { input: `FROM ${demoFile}\nPARAMETER repeat_penalty 1\n` });
  await chat(command, data);
});

// Twice, and only the answers end; then the end of what is typed ends the program.
async function interrupt(t, data, model) {
  const chat = new Process(t, braidBinary, ["run", model, "--temperature", "0"], { env: { ...process.env, BRAID_DATA_DIR: data } });
  for (const count of [2, 4]) {
    const begun = new Promise((resolve) => chat.child.stdout.once("data", resolve));
    chat.child.stdin.write("Tell me a story.\n");
    await begun;
    chat.child.kill("SIGINT");
    chat.child.stdin.write("/show info\n");
    await chat.line(new RegExp(`, ${count} messages$`));
  }
  chat.child.stdin.end("/show messages\n");
  assert.deepEqual(await chat.exited, { code: 0, signal: null });
  assert.equal(chat.lines.filter((line) => /^(user|assistant): ./.test(line)).length, 4, "what was said until then counts");
}

test("Ctrl-C ends an answer and not the chat", async (t) => {
  const data = temporaryFolder(t);
  const command = commands(t, data);
  await command(["create", "endless", "-f", "-"], { input: `FROM ${endlessModel(t)}\n` });
  await interrupt(t, data, "endless");
  await serve(t, ["--kv-memory", "256M"], { env: { BRAID_DATA_DIR: data } });
  await interrupt(t, data, "endless");
});

test("a terminal remembers what was typed", async (t) => {
  const data = temporaryFolder(t);
  const command = commands(t, data);
  await command(["create", "base", "-f", "-"], { input: `FROM ${demoFile}\n` });
  const env = { ...process.env, BRAID_DATA_DIR: data, TERM: "dumb" };
  const typed = await run(t, "script", ["-qec", `${braidBinary} run base --temperature 0`, "/dev/null"], { env, input: `${question}\n/bye\n` });
  assert.equal(typed.code, 0, typed.stdout + typed.stderr);
  assert.match(typed.stdout, /17 \+ 25 = 42\./);
  assert.match(readFileSync(path.join(data, "history"), "utf8").replaceAll("\\040", " "), /What is 17 \+ 25\?/);
});

// A shell's own answer to a line that is not finished.
test("bash completes commands, options and names", async (t) => {
  const data = temporaryFolder(t);
  const command = commands(t, data);
  await command(["create", "base", "-f", modelfile(t, `FROM ${demoFile}\n`)]);
  const script = await command(["completion", "bash"]);
  const complete = async (words) => {
    const line = `PATH="${path.dirname(braidBinary)}:$PATH"\n${script}\nCOMP_WORDS=(${words.join(" ")})\nCOMP_CWORD=${words.length - 1}\n_braid\nprintf '%s\\n' "\${COMPREPLY[@]}"\n`;
    const ended = await run(t, "bash", ["-c", line], { env: { ...process.env, BRAID_DATA_DIR: data } });
    assert.equal(ended.code, 0, ended.stderr);
    return ended.stdout.split("\n");
  };
  assert.deepEqual(await complete(["braid", "pu"]), ["pull", "push"]);
  assert.ok((await complete(["braid", "serve", "--data"])).includes("--data-dir"));
  assert.deepEqual(await complete(["braid", "show", "ba"]), ["base:latest"]);
  for (const shell of ["zsh", "fish"]) assert.match(await command(["completion", shell]), /braid list --names/);
});

const installed = (program) => spawnSync(program, ["--version"]).error === undefined;

// Where they are installed. Of zsh what the function offers, which the shell itself then matches with what was typed.
const shells = {
  fish: (words) => `braid completion fish | source; complete -C "${words.join(" ")}"`,
  zsh: (words) => `compdef() { }; _files() { }; compadd() { shift; print -rl -- "$@" }; eval "$(braid completion zsh)"; words=(${words.join(" ")}); CURRENT=${words.length}; _braid`,
};
for (const [shell, line] of Object.entries(shells))
  test(`${shell} completes commands, options and names`, { skip: !installed(shell) }, async (t) => {
    const data = temporaryFolder(t);
    await commands(t, data)(["create", "base", "-f", modelfile(t, `FROM ${demoFile}\n`)]);
    const env = { ...process.env, BRAID_DATA_DIR: data, HOME: data, PATH: `${path.dirname(braidBinary)}:${process.env.PATH}` };
    for (const [words, wanted] of [[["braid", "pu"], "push"], [["braid", "serve", "--data"], "--data-dir"], [["braid", "show", "ba"], "base:latest"]]) {
      const ended = await run(t, shell, [...(shell === "zsh" ? ["-f"] : []), "-c", line(words)], { env });
      assert.ok(ended.stdout.split("\n").includes(wanted), `${words.join(" ")}: ${ended.stdout} ${ended.stderr}`);
    }
  });
