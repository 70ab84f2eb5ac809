// Every row of docs/migration.md: flags start a server, fields and routes are asked of one.
import assert from "node:assert/strict";
import { test } from "node:test";
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { run, serve, sourceFolder, temporaryFolder } from "./support/processes.mjs";
import { post } from "./support/client.mjs";

const page = readFileSync(path.join(sourceFolder, "docs/migration.md"), "utf8");

// The rows of the table under a heading, as cells.
function rows(heading) {
  const section = page.split(/^## /m).find((text) => text.startsWith(heading));
  const lines = section.split("\n").filter((line) => line.startsWith("|")).slice(2);
  assert.ok(lines.length > 10, heading);
  return lines.map((line) => line.split(" | ").map((cell) => cell.replace(/^\| | \|$/g, "")));
}

const code = (cell) => cell.match(/^`(.*)`$/)?.[1];

test("every flag starts a server, and what has none says why", async (t) => {
  const folder = temporaryFolder(t);
  const file = (name) => path.join(folder, name);
  writeFileSync(file("keys"), "me sk-1\n");
  await run(t, "openssl", ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
    "-keyout", file("key"), "-out", file("certificate")]);
  const places = { KEYS: file("keys"), FOLDER: folder, CERTIFICATE: file("certificate"), KEY: file("key") };
  const done = new Set();
  for (const [server, theirs, here] of rows("Flags")) {
    if (here === "always" || here.startsWith("none: ")) continue;
    const words = code(here)?.split(" ").map((word) => word.replace(/^(KEYS|FOLDER|CERTIFICATE|KEY)(?=$|\/)/, (name) => places[name]));
    assert.ok(words, `${server} ${theirs}: ${here}`);
    if (done.has(here)) continue;
    done.add(here);
    const is_model = words[0].endsWith(".gguf");
    const args = is_model ? [path.join(sourceFolder, words[0])] : ["--no-model", ...words];
    const started = await serve(t, args, { port: words.includes("--port") ? [] : ["--port", "0"] });
    started.child.kill("SIGTERM");
    assert.deepEqual(await started.exited, { code: 0, signal: null }, here);
  }
  assert.ok(done.size > 30);
});

test("every field is served, taken or refused as the page says", async (t) => {
  const { url } = await serve(t);
  const bodies = {
    "/v1/completions": { prompt: "Once upon a time there was", max_tokens: 4 },
    "/v1/chat/completions": { messages: [{ role: "user", content: "Hello" }], max_tokens: 4 },
    "/completion": { prompt: "Hello", n_predict: 4 }, "/embedding": { content: "Hello" }, "/v1/embeddings": { input: "Once upon a time there was" },
    "/api/generate": { prompt: "Hello", stream: false }, "/api/chat": { messages: [{ role: "user", content: "Hello" }], stream: false },
  };
  for (const [server, field, at, here] of rows("Fields")) {
    const fields = JSON.parse(`{${code(field)}}`);
    const response = await post(url + code(at), { ...bodies[code(at)], ...fields });
    const text = await response.text();
    const name = Object.keys(fields)[0];
    if (here === "refused") {
      assert.equal(response.status, 400, `${server} ${field}: ${text}`);
      assert.ok(text.includes(`'${name}`), text);
    } else {
      assert.ok(here === "served" || here === "taken", here);
      assert.equal(response.status, 200, `${server} ${field}: ${text}`);
    }
  }
  // What is taken and served is known: only a misspelt one is refused where unknown names are.
  const strict = await serve(t, ["--strict-parameters"]);
  for (const [server, field, at, here] of rows("Fields")) {
    if (here === "refused") continue;
    const response = await post(strict.url + code(at), { ...bodies[code(at)], ...JSON.parse(`{${code(field)}}`) });
    assert.equal(response.status, 200, `${server} ${field}: ${await response.text()}`);
  }
  const misspelt = await post(`${strict.url}/v1/completions`, { prompt: "a", max_token: 4 });
  assert.equal(misspelt.status, 400);
  assert.equal((await misspelt.json()).error.param, "max_token");
});

test("every route answers", async (t) => {
  const { url } = await serve(t);
  const bodies = { "/completion": { prompt: "a", n_predict: 2 }, "/embedding": { content: "a" }, "/tokenize": { content: "a" }, "/detokenize": { tokens: [5] }, "/api/show": { model: "braid-demo" }, "/api/embed": { input: "a" }, "/api/embeddings": { prompt: "a" },
    "/apply-template": { messages: [{ role: "user", content: "a" }] } };
  for (const [server, theirs, here] of rows("Routes")) {
    const [method, route] = code(theirs).split(" ");
    const response = method === "GET" ? await fetch(url + route) : await post(url + route, bodies[route] ?? {});
    assert.equal(here, "served");
    assert.equal(response.status, 200, `${server} ${theirs}`);
  }
});

test("any model's name, and the operator's defaults", async (t) => {
  const { url } = await serve(t, ["--any-model-name", "--max-tokens", "3", "--temperature", "0", "--seed", "1"]);
  const ask = async (body) => (await (await post(`${url}/v1/chat/completions`, { messages: [{ role: "user", content: "Hello" }], ...body })).json());
  const answer = await ask({ model: "gpt-4o" });
  assert.equal(answer.usage.completion_tokens, 3);
  assert.equal(answer.choices[0].finish_reason, "length");
  assert.deepEqual((await ask({})).choices, answer.choices);
  assert.equal((await ask({ max_tokens: 2 })).usage.completion_tokens, 2);
  const named = await serve(t);
  for (const [model, status] of [["braid-demo.gguf", 200], ["org/braid-demo:latest", 200], ["gpt-4o", 404]])
    assert.equal((await post(`${named.url}/v1/completions`, { model, prompt: "a", max_tokens: 1 })).status, status, model);
});
