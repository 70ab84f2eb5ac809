// What documents say of the server, held against it.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
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

test("the file that docs/configuration.md shows is right", async (t) => {
  const [, text] = document("configuration.md").match(/```yaml\n([\s\S]*?)```/);
  const file = join(temporaryFolder(t), "braid.yaml");
  writeFileSync(file, text);
  const { code, stderr } = await braid(t, ["config", "check", file]);
  assert.equal(code, 0, stderr);
});
