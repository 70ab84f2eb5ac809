// What documents say of the server, held against it.
import assert from "node:assert/strict";
import { copyFileSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { gguf_adapter, safetensors, tensors_of, write_adapter } from "./support/adapters.mjs";
import { draw } from "./support/pictures.mjs";
import { braidBinary, run, braid, serve, sourceFolder, temporaryFolder } from "./support/processes.mjs";

const document = (name) => readFileSync(join(sourceFolder, "docs", name), "utf8");

test("docs/security.md says who may call each route, and the server agrees", async (t) => {
  const server = await serve(t, ["--kv-memory", "64M"], { env: { BRAID_API_KEY: "sk-of-a-client" } });
  const api = await (await fetch(`${server.url}/openapi.json`)).json();
  const rows = [...document("security.md").matchAll(/^\| (anybody|who reads|an administrator)[^|]* \| (.*) \|$/gm)];
  const told = new Map(rows.flatMap(([, caller, routes]) => [...routes.matchAll(/`([^`]+)`/g)].map(([, route]) => [route, caller])));
  for (const [path, operations] of Object.entries(api.paths)) {
    for (const method of Object.keys(operations)) {
      const caller = told.get(`${method.toUpperCase()} ${path}`) ?? "a client";
      told.delete(`${method.toUpperCase()} ${path}`);
      const url = server.url + path.replace(/\{[^}]+\}/g, "x");
      const status = async (headers) => (await fetch(url, { method: method.toUpperCase(), headers })).status;
      const without = await status({});
      const with_key = await status({ authorization: "Bearer sk-of-a-client" });
      assert.equal(without === 401, caller !== "anybody", `${method} ${path} without a key: ${without}`);
      assert.equal(with_key === 403, caller === "an administrator", `${method} ${path} with a client's key: ${with_key}`);
    }
  }
  assert.deepEqual([...told.keys()], [], "routes that the server does not have");
});

test("docs/security.md has a row for each library that the program is linked to", async (t) => {
  const { code, stdout, stderr } = await run(t, "readelf", ["--dynamic", braidBinary]);
  assert.equal(code, 0, stderr);
  const linked = [...stdout.matchAll(/\(NEEDED\).*\[(.*?)\.so\b/g)].map(([, name]) => name);
  assert.ok(linked.includes("libssl"), stdout);
  const [, section] = document("security.md").split("\n## Libraries\n");
  const told = new Set([...section.matchAll(/^\|.*/gm)].flatMap(([row]) => [...row.matchAll(/`(lib[^`]+)`/g)].map(([, name]) => name)));
  for (const name of linked.filter((name) => !/^ld-|san$|clang_rt/.test(name))) assert.ok(told.has(name), name);
});

test("options that documents name are options of the program", async (t) => {
  const helps = await Promise.all([["serve"], ["run"], ["info"], ["bench", "serve"], ["cache", "export"], ["cache", "import"], ["convert"],
    ["quantize"], ["split"], ["merge"], ["plan"], ["pull"], ["create"], ["show"], ["push"], ["list"], ["stop"]].map(async (words) => (await braid(t, [...words, "--help"])).stdout));
  const others = ["--component", "--data-binary", "--install", "--stop-timeout"];  // of cmake, curl and docker
  const known = new Set([...helps.join("\n").match(/--[a-z][a-z-]+/g), ...others]);
  for (const name of ["configuration.md", "page.md", "security.md", "metrics.md", "start.md", "models.md", "clients.md", "structured-output.md", "tuning.md",
    "adapters.md", "images.md", "networks.md", "operations.md", "policies.md", "registry.md", "scaling.md", "speculation.md", "vectors.md", "weights.md"])
    for (const [option] of document(name).matchAll(/--[a-z][a-z-]+/g)) assert.ok(known.has(option), `${name}: ${option}`);
});

test("sections that docs/configuration.md names are those of the program", async (t) => {
  const { stdout } = await braid(t, ["config", "init"]);
  const sections = [...stdout.matchAll(/^([a-z]+):$/gm)].map(([, name]) => name);
  const [told] = document("configuration.md").match(/in the section of their group[^.]*\./);
  assert.deepEqual([...told.matchAll(/`([a-z]+)`/g)].map(([, name]) => name).filter((name) => name !== "braid"), sections);
});

// A folder in which documents' commands find what they name.
function workplace(t) {
  const folder = temporaryFolder(t);
  mkdirSync(join(folder, "bin"));
  symlinkSync(braidBinary, join(folder, "bin/braid"));
  symlinkSync(join(sourceFolder, "models"), join(folder, "models"));
  copyFileSync(join(sourceFolder, "models/demo-q8_0.gguf"), join(folder, "model.gguf"));
  writeFileSync(join(folder, "system.txt"), "You are a storyteller. Tell short stories about animals, and be kind.");
  return { cwd: folder, env: { ...process.env, PATH: `${join(folder, "bin")}:${process.env.PATH}` } };
}

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

// By document: what its commands find besides, and what the server serves that runs already.
const prepared = {
  "adapters.md": { make(folder) {
    write_adapter(join(folder, "adapters/tuned"), 1);
    const factors = Object.entries(tensors_of(2)).filter(([name]) => name.includes("q_proj")).map(([name, tensor]) =>
      [name.replace(/.*layers\.(\d+)\..*lora_([AB])\.weight/, (_, layer, factor) => `blk.${layer}.attn_q.weight.lora_${factor.toLowerCase()}`), tensor]);
    writeFileSync(join(folder, "short.gguf"), gguf_adapter(Object.fromEntries(factors), 8));
  } },
  "images.md": { make: (folder) => writeFileSync(join(folder, "picture.png"), draw({ things: [{ shape: "star", colour: "red", cell: 2 }] })) },
  "networks.md": { args: ["policy"], make: (folder) => network(join(folder, "policy"), document("networks.md").match(/```json\n([\s\S]*?)```/)[1],
    { ...gru(5, 0), ...gru(12, 1), "policy.weight": [3, 12], "policy.bias": [3], "value.weight": [1, 12], "value.bias": [1] }) },
  "policies.md": { args: ["model.gguf", "policy", "--adapter-dir", "."], make: cart },
  "weights.md": { make(folder) {
    cart(folder);
    network(join(folder, "checkpoints/step-7"), "", kCart);
    network(folder, "", kCart);
  } },
};

const readme = readFileSync(join(sourceFolder, "README.md"), "utf8");
const shown = { "README.md": readme };
for (const name of ["start.md", "models.md", "clients.md", "structured-output.md", "configuration.md", "speculation.md", "tuning.md",
  ...Object.keys(prepared)]) shown[name] = document(name);

// What a document shows to be done, in its order: blocks of shell and of JavaScript, and commands of braid; but for what needs the hub,
// whose names are nobody's.
function steps_of(text) {
  const found = [...text.matchAll(/^```(sh|js)\n([\s\S]*?)^```$|^ {4}(braid .*?)(?: {2,}#.*)?$/gm)];
  return found.map(([, kind, block, command]) => ({ kind: kind ?? "sh", script: block ?? command })).filter(({ script }) => !script.includes("OWNER"));
}

for (const [name, text] of Object.entries(shown)) {
  test(`what ${name} shows does what it says`, async (t) => {
    const place = workplace(t);
    prepared[name]?.make(place.cwd);
    const start = (args) => serve(t, [...args, "--kv-memory", "64M"], { cwd: place.cwd });
    const servers = { 8000: await start(prepared[name]?.args ?? []) };  // by the ports that are written there
    const steps = steps_of(text);
    assert.ok(steps.length > 0);
    for (const { kind, script } of steps) {
      if (script.startsWith("braid serve")) {
        const port = script.match(/ --port (\d+)/)?.[1] ?? 8000;
        servers[port]?.child.kill("SIGKILL");
        servers[port] = await start(script.replace(/ --port \d+/, "").split(" ").slice(2));
        continue;
      }
      const here = script.replace(/(?:127\.0\.0\.1|localhost):(\d+)/g, (address, port) => (servers[port] ? `127.0.0.1:${servers[port].port}` : address));
      const bench = here.startsWith("braid bench") && !here.includes("--base-url") ? ` --base-url ${servers[8000].url}` : "";
      const { code, stdout, stderr } = kind === "js"
        ? await run(t, process.execPath, ["--input-type=module", "-e", here], { cwd: import.meta.dirname })
        : await run(t, "sh", ["-ec", here + bench], place);
      assert.equal(code, 0, `${script}: ${stderr}`);
      assert.doesNotMatch(stdout, /"error":\s*["{]/, script);
      if (/curl|\.create|\.parse/.test(script)) assert.notEqual(stdout, "", script);
    }
    for (const server of Object.values(servers)) {  // some go on writing to the folder
      server.child.kill("SIGKILL");
      await server.exited;
    }
  });
}

test("the API's reference has every path, parameter and schema of its description", async (t) => {
  const file = join(temporaryFolder(t), "api.md");
  const { code, stderr } = await run(t, "python3", [join(sourceFolder, "scripts/api-reference"), file]);
  assert.equal(code, 0, stderr);
  const text = readFileSync(file, "utf8");
  const api = JSON.parse(readFileSync(join(sourceFolder, "src/net/docs/openapi.json"), "utf8"));
  for (const [path, operations] of Object.entries(api.paths)) {
    for (const [method, { parameters = [] }] of Object.entries(operations)) {
      assert.ok(text.includes(`### ${method.toUpperCase()} ${path}\n`), path);
      for (const parameter of parameters) assert.ok(text.includes(`| \`${parameter.name}\``), `${path} ${parameter.name}`);
    }
  }
  for (const [name, { properties = {} }] of Object.entries(api.components.schemas)) {
    const [, section] = text.split(`### ${name}\n`);
    assert.ok(section, name);
    for (const property of Object.keys(properties)) assert.ok(section.split("\n### ")[0].includes(`| \`${property}\``), `${name} ${property}`);
  }
});

test("the request that README.md shows is answered as a stream", async (t) => {
  const server = await serve(t, ["--kv-memory", "64M"]);
  const [command] = readme.match(/^ {4}curl -N [\s\S]*?'$(?=\n\n)/m);
  const { code, stdout, stderr } = await run(t, "sh", ["-c", command.replace("127.0.0.1:8000", `127.0.0.1:${server.port}`)]);
  assert.equal(code, 0, stderr);
  assert.match(stdout, /data: \[DONE\]$/m);
});

test("the file that docs/configuration.md shows is right", async (t) => {
  const [, text] = document("configuration.md").match(/```yaml\n([\s\S]*?)```/);
  const file = join(temporaryFolder(t), "braid.yaml");
  writeFileSync(file, text);
  const { code, stderr } = await braid(t, ["config", "check", file]);
  assert.equal(code, 0, stderr);
});
