// What documents show to be done: each of its commands is run as it stands there, or it is told why not.
import assert from "node:assert/strict";
import { copyFileSync, cpSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { gguf_adapter, safetensors, tensors_of, write_adapter } from "./support/adapters.mjs";
import { documents, elsewhere, sentences, sentences_of, steps_of } from "./support/documents.mjs";
import { draw } from "./support/pictures.mjs";
import { Process, braidBinary, freePort, run, sourceFolder, temporaryFolder } from "./support/processes.mjs";
import { demo, hub, registry } from "./support/registries.mjs";

const reference = (name) => join(sourceFolder, "test/model/reference", name);

// A network of numbers that are all the same, with tensors of these shapes.
function network(folder, config, shapes) {
  mkdirSync(folder, { recursive: true });
  if (config) writeFileSync(join(folder, "config.json"), config);
  const tensors = Object.fromEntries(Object.entries(shapes).map(([name, shape]) =>
    [name, { shape, values: new Array(shape.reduce((product, each) => product * each)).fill(0.1) }]));
  writeFileSync(join(folder, "model.safetensors"), safetensors(tensors));
}

const kCart = { "policy.weight": [2, 4] };
const cart = (folder) => network(join(folder, "policy"), JSON.stringify({ model_type: "braid-net", inputs: { x: { shape: ["batch", 4] } },
  layers: [{ name: "policy", type: "linear" }], outputs: { logits: "policy" }, policy: { logits: "logits" } }), kCart);
const gru = (inputs, layer) => ({ [`gru.weight_ih_l${layer}`]: [36, inputs], [`gru.weight_hh_l${layer}`]: [36, 12], [`gru.bias_ih_l${layer}`]: [36], [`gru.bias_hh_l${layer}`]: [36] });
const copy_folder = (from, to) => cpSync(reference(from), to, { recursive: true });

// By document: what its commands find besides, what the server serves that runs already, and what stands for words that are nobody's.
const prepared = {
  "README.md": { make: (folder) => copy_folder("encoders/mistral", join(folder, "folder")) },
  "adapters.md": { make(folder) {
    write_adapter(join(folder, "adapters/tuned"), 1);
    const factors = Object.entries(tensors_of(2)).filter(([name]) => name.includes("q_proj")).map(([name, tensor]) =>
      [name.replace(/.*layers\.(\d+)\..*lora_([AB])\.weight/, (_, layer, factor) => `blk.${layer}.attn_q.weight.lora_${factor.toLowerCase()}`), tensor]);
    writeFileSync(join(folder, "short.gguf"), gguf_adapter(Object.fromEntries(factors), 8));
  } },
  "images.md": { make: (folder) => writeFileSync(join(folder, "picture.png"), draw({ things: [{ shape: "star", colour: "red", cell: 2 }] })) },
  "models.md": { make: (folder) => copy_folder("encoders/mistral", join(folder, "folder")) },
  "networks.md": { args: "policy", make(folder) {
    network(join(folder, "policy"), documents["networks.md"].match(/```json\n([\s\S]*?)```/)[1],
      { ...gru(5, 0), ...gru(12, 1), "policy.weight": [3, 12], "policy.bias": [3], "value.weight": [1, 12], "value.bias": [1] });
    cpSync(join(folder, "policy"), join(folder, "value"), { recursive: true });
  } },
  "policies.md": { args: "model.gguf policy --adapter-dir .", make: cart },
  "registry.md": { make: (folder) => writeFileSync(join(folder, "Modelfile"), "FROM demo:1b\nSYSTEM \"Be brief.\"\nPARAMETER temperature 0\n") },
  "scaling.md": {
    words: { "/models/big.gguf": "big.gguf", "10.0.0.1:7000": "127.0.0.1:0", "/shared/adapters": "adapters", "braid-nodes:8000": "127.0.0.1:1", "--threads 32": "--threads 1" },
    make(folder) {
      mkdirSync(join(folder, "adapters"));
      copyFileSync(join(folder, "model.gguf"), join(folder, "big.gguf"));
      writeFileSync(join(folder, "hosts"), "localhost slots=4\n");
      writeFileSync(join(folder, "keys"), "others sk-others-0001 administrator\n", { mode: 0o600 });
      writeFileSync(join(folder, "peer-key"), "sk-others-0001\n", { mode: 0o600 });
    },
  },
  "vectors.md": { args: "encoder", make: (folder) => copy_folder("encoders/bert", join(folder, "encoder")) },
  "weights.md": { make(folder) {
    cart(folder);
    network(join(folder, "checkpoints/step-7"), "", kCart);
    network(folder, "", kCart);
  } },
};

// A folder in which documents' commands find what they name, and a hub and a registry that have what they pull.
async function workplace(t, name) {
  const folder = temporaryFolder(t);
  mkdirSync(join(folder, "bin"));
  symlinkSync(braidBinary, join(folder, "bin/braid"));
  symlinkSync(join(sourceFolder, "models"), join(folder, "models"));
  copyFileSync(join(sourceFolder, "models/demo-q8_0.gguf"), join(folder, "model.gguf"));
  writeFileSync(join(folder, "system.txt"), "You are a storyteller. Tell short stories about animals, and be kind.");
  prepared[name]?.make?.(folder);
  const models = await registry(t);
  models.put("library/demo:1b", demo());
  const files = await hub(t, { "demo-Q4_K_M.gguf": demo() });
  const env = { ...process.env, PATH: `${join(folder, "bin")}:${process.env.PATH}`, BRAID_DATA_DIR: join(folder, "data"),
    BRAID_REGISTRY_MIRROR: models.url, HF_ENDPOINT: files.url, REGISTRY: models.host };
  return { cwd: folder, env };
}

const has_ranks = existsSync(join(dirname(braidBinary), "braid-rank"));
const is_serving = (script) => /^(?:[A-Z_]+=\S+ )*braid (?:launch .*)?serve\b(?!.*--help)/.test(script);

// Does the commands of one document one after the other; servers are known by the ports that are written there.
class Reader {
  servers = {};
  redis = "";

  constructor(t, name, place) { Object.assign(this, { t, place, words: prepared[name]?.words ?? {} }); }

  async serve(script) {
    const port = script.match(/ --port (\d+)/)?.[1] ?? 8000;
    await this.end(this.servers[port]);
    const command = script.replace(/ --port \d+/, "").replace(/\bserve\b/, "serve --port 0").replace(/^(?=[A-Z_]+=)/, "env ");
    const server = new Process(this.t, "sh", ["-c", `exec ${command} --kv-memory 64M`], this.place);
    server.address = `127.0.0.1:${(await server.line(/listening on https?:\S+:(\d+)/))[1]}`;
    await server.line(/^ready/);
    this.servers[port] = server;
  }

  async end(server) {
    server?.child.kill("SIGKILL");
    await server?.exited;
  }

  async start_redis(script) {
    const port = await freePort();
    const server = new Process(this.t, "sh", ["-c", `exec ${script} --port ${port} --bind 127.0.0.1`], this.place);
    await server.line(/Ready to accept connections/);
    this.redis = `127.0.0.1:${port}`;
  }

  async run({ kind, script }) {
    for (const [word, instead] of Object.entries(this.words)) script = script.replaceAll(word, instead);
    script = script.replaceAll("OWNER/NAME", "owner/name").replaceAll("cache.local", this.redis);
    if (/--ranks\b/.test(script) && !has_ranks) return;
    if (script.startsWith("redis-server ")) return this.start_redis(script);
    if (is_serving(script)) return this.serve(script);
    const here = script.replace(/(?:127\.0\.0\.1|localhost):(\d+)/g, (address, port) => this.servers[port]?.address ?? address);
    const bench = here.startsWith("braid bench") && !here.includes("--base-url") ? ` --base-url http://${this.servers[8000].address}` : "";
    const { code, stdout, stderr } = kind === "js"
      ? await run(this.t, process.execPath, ["--input-type=module", "-e", here], { cwd: import.meta.dirname })
      : await run(this.t, "bash", ["-ec", here + bench], this.place);
    assert.equal(code, 0, `${script}: ${stderr}${stdout}`);
    assert.doesNotMatch(stdout, /"error":\s*["{]/, script);
    if (/curl|\.create|\.parse/.test(script)) assert.notEqual(stdout, "", script);
  }
}

// The agents' page is a test of its own but for what is listed here.
const steps_here = (name, text) => steps_of(text).filter(({ script }) => !(name === "agents.md" && script.endsWith("\n")) && !elsewhere[name]?.[script]);

for (const [name, text] of Object.entries(documents)) {
  const steps = [...steps_here(name, text), ...Object.values(sentences[name] ?? {}).flat().map((script) => ({ kind: "sh", script }))];
  if (steps.length === 0) continue;
  test(`what ${name} shows does what it says`, async (t) => {
    const reader = new Reader(t, name, await workplace(t, name));
    await reader.serve(`braid serve ${prepared[name]?.args ?? ""}`);
    for (const step of steps) await reader.run(step);
    for (const server of Object.values(reader.servers)) await reader.end(server);  // some go on writing to the folder
  });
}

test("each command of the documents is run, or it is told why not", () => {
  const lists = { ...sentences };
  for (const [name, list] of Object.entries(elsewhere)) lists[name] = { ...lists[name], ...list };
  for (const [name, text] of Object.entries(documents)) {
    const said = sentences_of(text);
    for (const command of said) assert.ok(lists[name]?.[command], `${name}: nothing is said of \`${command}\` in test/e2e/support/documents.mjs`);
    const shown = new Set([...said, ...steps_of(text).map(({ script }) => script)]);
    for (const command of Object.keys(lists[name] ?? {})) assert.ok(shown.has(command), `${name} does not show \`${command}\``);
  }
  const runs = Object.entries(documents).flatMap(([name, text]) =>
    [...steps_here(name, text).map(({ script }) => script), ...Object.values(sentences[name] ?? {}).flat()]);
  const named = Object.values(sentences).flatMap((list) => Object.keys(list).filter((command) => list[command].length === 0));
  for (const command of named) assert.ok(runs.some((each) => each.startsWith(command)), `nothing runs \`${command}\``);
});

test("the request that README.md shows is answered as a stream", async (t) => {
  const reader = new Reader(t, "README.md", await workplace(t, "README.md"));
  await reader.serve("braid serve");
  const { script } = steps_of(documents["README.md"]).find((step) => step.script.startsWith("curl -N "));
  const { code, stdout, stderr } = await run(t, "sh", ["-c", script.replace("127.0.0.1:8000", reader.servers[8000].address)]);
  assert.equal(code, 0, stderr);
  assert.match(stdout, /data: \[DONE\]$/m);
});
