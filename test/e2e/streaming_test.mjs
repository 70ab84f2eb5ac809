// curl -N sees tokens as they are made: directly, and through nginx with its stock proxy.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { test } from "node:test";
import { nginx, serve } from "./support/processes.mjs";
import { collect, frees_everything, metric, post } from "./support/client.mjs";

// On the slow kernels far longer than the time from a token to the client: while it runs, what arrived cannot have waited for the end.
const slow = ["--isa", "avx2", "--threads", "1"];
const long = { prompt: "Once upon a time", max_tokens: 600, ignore_eos: true, temperature: 0, stream: true };

// Starts `curl -N` and resolves at the first token.
async function curl(t, url, body) {
  const child = spawn("curl", ["-sSN", "--max-time", "200", "-i", `${url}/v1/completions`, "-H", "Content-Type: application/json",
    "-d", JSON.stringify(body)]);
  const request = { child, output: "", pieces: 0 };
  request.ended = new Promise((resolve) => child.on("close", resolve));
  t.after(async () => { child.kill("SIGKILL"); await request.ended; });
  await new Promise((resolve) => {
    child.stdout.on("data", (data) => {
      request.output += data;
      request.pieces += 1;
      if (request.output.includes('"text"')) resolve();
    });
    child.on("close", resolve);
  });
  return request;
}

async function streams_token_by_token(t, server, url) {
  const request = await curl(t, url, long);
  assert.equal(await metric(server.url, "braid_sequences_decoding"), 1, "the first token arrived after the last one was made");
  assert.match(request.output, /^HTTP\/1\.1 200 /);
  assert.match(request.output, /\r\nContent-Type: text\/event-stream/i);
  assert.equal(await request.ended, 0);
  assert.ok(request.pieces > 50, `the answer came in ${request.pieces} pieces`);
  assert.match(request.output, /data: \[DONE\]\n\n$/);
}

async function frees_on_disconnect(t, server, url) {
  const request = await curl(t, url, long);
  request.child.kill("SIGKILL");
  await frees_everything(server.url);
}

test("curl -N, directly", async (t) => {
  const server = await serve(t, slow);
  await streams_token_by_token(t, server, server.url);
  await frees_on_disconnect(t, server, server.url);
});

test("curl -N, through nginx", async (t) => {
  const server = await serve(t, slow);
  const proxy = await nginx(t, server.port);
  await streams_token_by_token(t, server, proxy);
  await frees_on_disconnect(t, server, proxy);
});

test("the same answer directly, through nginx, and not streamed", async (t) => {
  const server = await serve(t);
  const proxy = await nginx(t, server.port);
  const body = { prompt: "The little robot", max_tokens: 40, temperature: 0.8, seed: 3 };
  const direct = await collect(await post(`${server.url}/v1/completions`, { ...body, stream: true }));
  const proxied = await collect(await post(`${proxy}/v1/completions`, { ...body, stream: true }));
  const whole = await (await post(`${proxy}/v1/completions`, body)).json();
  assert.ok(direct.done && proxied.done);
  assert.equal(proxied.text, direct.text);
  assert.equal(whole.choices[0].text, direct.text);
});

test("an HTTP/1.0 client gets a stream that ends by close", async (t) => {
  const server = await serve(t);
  const child = spawn("curl", ["-sSN0", "--max-time", "100", "-i", `${server.url}/v1/completions`, "-d",
    JSON.stringify({ ...long, max_tokens: 5 })]);
  let output = "";
  child.stdout.on("data", (data) => { output += data; });
  assert.equal(await new Promise((resolve) => child.on("close", resolve)), 0);
  assert.doesNotMatch(output, /Transfer-Encoding/i);
  assert.match(output, /X-Accel-Buffering: no/i);
  assert.match(output, /data: \[DONE\]\n\n$/);
});
