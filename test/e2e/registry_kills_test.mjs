// kill -9 at random moments of a pull, a creation, a copy, a removal and a discovery: nothing is half there, nothing is lost, and the next
// start is clean.
import assert from "node:assert/strict";
import { readdirSync, readFileSync, rmSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { braid, braidBinary, Process, sourceFolder, temporaryFolder } from "./support/processes.mjs";
import { demo, digestOf, registry } from "./support/registries.mjs";

const rounds = Number(process.env.KILL_ROUNDS ?? 20);
const demoFile = path.join(sourceFolder, "models/demo-q8_0.gguf");

// Numbers in [0, 1) that a seed repeats.
function* random(seed) {
  for (let state = seed; ;) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    yield state / 2 ** 32;
  }
}

test(`${rounds} kills`, async (t) => {
  const source = await registry(t);
  source.put("library/pulled:latest", demo(), "Be brief.");
  Object.assign(source.faults, { delay: 5, step: 1024 * 1024 });
  const data = temporaryFolder(t);
  const env = { ...process.env, BRAID_DATA_DIR: data, BRAID_REGISTRY_MIRROR: source.url };
  const run = async (args, input = "") => {
    const ended = await braid(t, args, { env, input });
    assert.equal(ended.code, 0, `${args.join(" ")}: ${ended.stderr}`);
    return ended.stdout;
  };
  // What is listed can be shown, and has weights that are what their name says.
  const check = async (what) => {
    const names = (await run(["list", "--names"])).split("\n").filter(Boolean);
    for (const name of names) {
      const shown = JSON.parse(await run(["show", name, "--json"]));
      assert.equal(shown.model_info["general.architecture"], "llama", `${what}: ${name}`);
    }
    for (const name of readdirSync(path.join(data, "blobs")))
      if (/^sha256-[0-9a-f]{64}$/.test(name)) assert.equal(digestOf(readFileSync(path.join(data, "blobs", name))).slice(7), name.slice(7), what);
    assert.ok(names.includes("base:latest"), `${what}: what was there is lost`);
    return names;
  };

  await run(["create", "base", "-f", "-"], `FROM ${demoFile}\n`);
  const works = {
    pull: ["pull", "pulled"],
    create: ["create", "made", "-f", "-"],
    copy: ["cp", "base", "copied"],
    remove: ["rm", "doomed"],
    list: ["list"],
  };
  const next = random(Number(process.env.KILL_SEED ?? 1));
  const longest = { pull: 600, create: 150, copy: 60, remove: 60, list: 40 };
  for (let round = 0; round < rounds; ++round) {
    const [kind, args] = Object.entries(works)[round % 5];
    if (kind === "remove" && !(await check("before")).includes("doomed:latest")) await run(["cp", "base", "doomed"]);
    if (kind === "list") rmSync(path.join(data, "registry.db"), { force: true });  // it is made again meanwhile
    const program = new Process(t, braidBinary, args, { env });
    program.child.stdin.on("error", () => {});
    program.child.stdin.end(kind === "create" ? `FROM base\nSYSTEM round ${round}\n` : "");
    await new Promise((resolve) => setTimeout(resolve, next.next().value * longest[kind]));
    program.child.kill("SIGKILL");
    await program.exited;
    await check(`round ${round}, ${kind}`);
  }
  source.faults.delay = 0;
  await run(["pull", "pulled"]);
  await run(["create", "made", "-f", "-"], "FROM base\nSYSTEM the end\n");
  const names = await check("at the end");
  assert.ok(names.includes("pulled:latest") && names.includes("made:latest"));
  for (const name of names) await run(["rm", name]);
  const left = readdirSync(path.join(data, "blobs")).filter((name) => /^sha256-[0-9a-f]{64}$/.test(name) && readFileSync(path.join(data, "blobs", name)).length > 1e6);
  assert.deepEqual(left, []);
});
