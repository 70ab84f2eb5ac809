// The web page as it is served, and that none of its files could run a model's words.
import assert from "node:assert/strict";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { serve, sourceFolder, temporaryFolder } from "./support/processes.mjs";

const folder = join(sourceFolder, "src/net/page");
const names = readdirSync(folder).filter((name) => /\.(html|css|js|svg)$/.test(name));
const text_of = (name) => readFileSync(join(folder, name), "utf8");
const figures = await import(join(folder, "figures.js"));

const cleanups = [];
const suite = { after: (cleanup) => cleanups.push(cleanup) };
let server;

before(async () => {
  const keys = join(temporaryFolder(suite), "keys");
  writeFileSync(keys, "alice sk-1234567890\n", { mode: 0o600 });
  server = await serve(suite, ["--kv-memory", "64M", "--api-key-file", keys]);
});
after(async () => { for (const cleanup of cleanups.reverse()) await cleanup(); });

test("every file of the page is served as it is, without a key", async () => {
  for (const name of names) {
    const response = await fetch(`${server.url}/page/${name}`);
    assert.equal(response.status, 200, name);
    assert.equal(await response.text(), text_of(name), name);
    assert.match(response.headers.get("content-security-policy"), /script-src 'self'/);
  }
  const page = await fetch(server.url, { headers: { accept: "text/html" } });
  assert.equal(await page.text(), text_of("index.html"));
  assert.equal((await fetch(`${server.url}/v1/models`)).status, 401);
});

test("no file has inline script, HTML made of text, or an address of another host", () => {
  for (const name of names) {
    const text = text_of(name);
    assert.doesNotMatch(text, /innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|srcdoc/, name);
    const addresses = (text.match(/https?:\/\/[a-z][^\s"'`)]*/g) ?? []).filter((address) => !address.startsWith("http://www.w3.org/"));
    assert.deepEqual(addresses, [], name);
    if (!name.endsWith(".html")) continue;
    assert.doesNotMatch(text, /\son[a-z]+=|\sstyle=|<style|javascript:/i, name);
    for (const [script] of text.matchAll(/<script[^>]*>[^<]*/g)) assert.match(script, /^<script type="module" src="page\/[a-z_]+\.js">$/);
  }
  assert.doesNotMatch(text_of("page.css"), /@import|url\(/);
});

test("modules import files of the page only", () => {
  for (const name of names.filter((each) => each.endsWith(".js")))
    for (const [, from] of text_of(name).matchAll(/from "([^"]+)"/g)) assert.ok(names.includes(from.replace("./", "")), `${name}: ${from}`);
});

test("the engine room's figures are those of /v1/metrics", async () => {
  const read = async () => (await (await fetch(`${server.url}/v1/metrics`, { headers })).json()).metrics;
  const headers = { authorization: "Bearer sk-1234567890", "content-type": "application/json" };
  const before_answer = await read();
  const body = JSON.stringify({ messages: [{ role: "user", content: "Once" }], max_tokens: 40, ignore_eos: true });
  const answer = await (await fetch(`${server.url}/v1/chat/completions`, { method: "POST", headers, body })).json();
  const now = await read();
  const rates = figures.rates(before_answer, now, 2);
  assert.equal(rates.generated, answer.usage.completion_tokens / 2);
  assert.ok(rates.decode_share > 0 && rates.prefill_share > 0 && rates.steps > 0);
  assert.equal(rates.hit_share, 0);
  const { all, held, cached, empty } = figures.pool(now);
  assert.ok(all > 0 && cached > 0 && held + cached + empty === all);
  assert.ok(figures.percentile(before_answer, now, "inter_token_latency_ms", 0.5) > 0);
  assert.equal(figures.percentile(now, now, "inter_token_latency_ms", 0.5), null);
  assert.equal(figures.value(now, "cancelled_nothing"), 0);
});
