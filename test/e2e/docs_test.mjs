// What documents say of the server, held against it.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { braid, serve, sourceFolder } from "./support/processes.mjs";

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

test("options that documents name are options of the program", async (t) => {
  const helps = await Promise.all([["serve"], ["run"], ["info"], ["bench", "serve"], ["cache", "export"], ["cache", "import"], ["convert"],
    ["quantize"], ["split"], ["merge"]].map(async (words) => (await braid(t, [...words, "--help"])).stdout));
  const known = new Set(helps.join("\n").match(/--[a-z][a-z-]+/g));
  for (const name of ["configuration.md", "page.md", "security.md", "metrics.md"])
    for (const [option] of document(name).matchAll(/--[a-z][a-z-]+/g)) assert.ok(known.has(option), `${name}: ${option}`);
});

test("sections that docs/configuration.md names are those of the program", async (t) => {
  const { stdout } = await braid(t, ["config", "init"]);
  const sections = [...stdout.matchAll(/^([a-z]+):$/gm)].map(([, name]) => name);
  const [told] = document("configuration.md").match(/in the section of their group[^.]*\./);
  assert.deepEqual([...told.matchAll(/`([a-z]+)`/g)].map(([, name]) => name).filter((name) => name !== "braid"), sections);
});
