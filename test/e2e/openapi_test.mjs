// /openapi.json: a valid document, whose examples hold against the running server.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { before, after, test } from "node:test";
import { Validator } from "@seriousme/openapi-schema-validator";
import Ajv2020 from "ajv/dist/2020.js";
import { write_adapter } from "./support/adapters.mjs";
import { serve, sourceFolder, temporaryFolder } from "./support/processes.mjs";
import { events, post, story } from "./support/client.mjs";

const cleanups = [];
let server, api, ajv;
let jobs = 0;

before(async () => {
  const reference = (name) => join(sourceFolder, "test/model/reference", name);
  const models = { "braid-demo": join(sourceFolder, "models/demo-q8_0.gguf"), mlp: reference("networks/mlp") };
  for (const name of ["bert-rank", "bert-labels", "llama-reward"]) models[name] = reference(`encoders/${name}`);
  const adapters = temporaryFolder({ after: (cleanup) => cleanups.push(cleanup) });
  write_adapter(join(adapters, "demo-lora"), 1);
  const aliases = Object.keys(models).flatMap((name) => ["--alias", name]);
  server = await serve({ after: (cleanup) => cleanups.push(cleanup) }, [...Object.values(models), "--kv-memory", "256M", "--adapter-dir", adapters, "--weights-dir", reference("networks"), ...aliases]);
  api = await (await fetch(`${server.url}/openapi.json`)).json();
  ajv = new Ajv2020({ strict: false, allErrors: true });
  ajv.addSchema(api, "api");
});
after(async () => { for (const cleanup of cleanups) await cleanup(); });

// A validator of a place in the document, whose references are the document's.
function validator(...path) {
  const pointer = path.map((part) => encodeURIComponent(part.replaceAll("~", "~0").replaceAll("/", "~1"))).join("/");
  const validate = ajv.compile({ $ref: `api#/${pointer}` });
  return (value, what) => assert.ok(validate(value), `${what}: ${ajv.errorsText(validate.errors)}`);
}

const example_of = (path) => api.paths[path].post.requestBody.content["application/json"].example;

// A stream that goes on until it is ended by its id.
const endless = (path, fields) => post(server.url + path, { ...fields, stream: true, ignore_eos: true });

// The id of a response that is being generated.
async function running_response() {
  const reader = (await endless("/v1/responses", { input: story, max_output_tokens: 900 })).body.getReader();
  let text = "";
  while (true) {
    text += new TextDecoder().decode((await reader.read()).value);
    const found = text.match(/"id":"(resp_[^"]+)"/);
    if (found) return found[1];
  }
}

// What a path's parameter stands for; a response must be made before it can be shown, and run to be cancelled.
async function argument(parameter, path) {
  if (parameter.name === "job")
    return (await (await post(`${server.url}/v1/training/jobs`, { ...example_of("/v1/training/jobs"), name: `job-${++jobs}` })).json()).id;
  if (parameter.name !== "response_id") return parameter.example;
  if (path.endsWith("/cancel")) return running_response();
  return (await (await post(`${server.url}/v1/responses`, example_of("/v1/responses"))).json()).id;
}

// Abort needs something to end: a long stream, whose id takes the place of the example's.
async function execute(path, method, operation) {
  let url = server.url + path;
  for (const parameter of operation.parameters ?? []) url = url.replace(`{${parameter.name}}`, await argument(parameter, path));
  if (method !== "post") return fetch(url, { method: method.toUpperCase() });
  if (path !== "/v1/abort") return post(url, example_of(path));
  const stream = events(await endless("/v1/chat/completions", { messages: [{ role: "user", content: story }], max_tokens: 900 }));
  const { id } = (await stream.next()).value;
  const answer = await post(url, { ...example_of(path), id });
  for await (const event of stream) assert.notEqual(event, "[DONE]");
  return answer;
}

test("the document is valid OpenAPI 3.1", async () => {
  const result = await new Validator().validate(structuredClone(api));
  assert.ok(result.valid, JSON.stringify(result.errors));
  assert.match(api.openapi, /^3\.1\./);
});

// They ask another server, or change or answer nothing that could be looked at here: registry_test, model_swaps_test and peers_test have them.
const elsewhere = new Set(["/api/pull", "/api/push", "/api/copy", "/api/delete", "/api/blobs/{digest}",
  "/v1/models/load", "/v1/models/unload", "/sleep", "/wake_up", "/v1/peers", "/v1/peers/changes"]);

// What the example of /api/create is made from.
async function make_base() {
  const bytes = readFileSync(join(sourceFolder, "models/demo-q8_0.gguf"));
  const digest = `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
  assert.equal((await fetch(`${server.url}/api/blobs/${digest}`, { method: "POST", body: bytes })).status, 201);
  assert.equal((await post(`${server.url}/api/create`, { model: "base", files: { "base.gguf": digest }, stream: false })).status, 200);
}

test("every example is answered as described", async () => {
  await make_base();
  for (const [path, operations] of Object.entries(api.paths)) {
    for (const [method, operation] of Object.entries(operations)) {
      const name = `${method} ${path}`;
      if (path === "/infill") continue;  // the embedded model was not trained to fill gaps
      if (elsewhere.has(path)) continue;
      const body = operation.requestBody?.content["application/json"];
      if (body) validator("paths", path, method, "requestBody", "content", "application/json", "schema")(body.example, `${name}: request`);
      const response = await execute(path, method, operation);
      assert.equal(response.status, 200, name);
      const type = response.headers.get("content-type").split(";")[0];
      const described = operation.responses["200"].content[type];
      assert.ok(described, `${name} answers ${type}`);
      const valid = validator("paths", path, method, "responses", "200", "content", type, "schema");
      const answer = type === "application/json" ? await response.json() : await response.text();
      valid(answer, `${name}: answer`);
      valid(described.example, `${name}: example of the answer`);
      if (Array.isArray(answer) || typeof answer === "string" || path === "/openapi.json") continue;
      assert.deepEqual(Object.keys(answer).sort(), Object.keys(described.example).sort(), name);
    }
  }
});

test("a wrong request is answered as described", async () => {
  for (const [path, { post: operation }] of Object.entries(api.paths)) {
    if (!operation) continue;
    const response = await post(server.url + path, []);
    assert.equal(response.status, 400, path);
    validator("paths", path, "post", "responses", "4XX", "content", "application/json", "schema")(await response.json(), path);
  }
});

test("a page shows it without fetching anything else", async () => {
  const page = await (await fetch(`${server.url}/docs`)).text();
  assert.deepEqual([...page.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, name]) => name), ["page/icon.svg", "page/docs.css", "page/docs.js"]);
  assert.match(await (await fetch(`${server.url}/page/docs.js`)).text(), /fetch\("openapi\.json"\)/);
});
