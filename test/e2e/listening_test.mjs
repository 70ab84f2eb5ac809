// The ways into the server: several addresses, a Unix socket, TLS.
import assert from "node:assert/strict";
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { ask } from "./support/connections.mjs";
import { braid, run, serve, temporaryFolder } from "./support/processes.mjs";

const story = { prompt: "Once upon a time", max_tokens: 16, temperature: 0 };

test("several addresses, IPv6 among them", async (t) => {
  const server = await serve(t, ["--no-model", "--listen", "127.0.0.1:0", "[::1]:0"], { port: [] });
  await server.line(/^ready/);
  const urls = server.lines.map((line) => line.match(/listening on (\S+)/)?.[1]).filter((url) => url);
  assert.equal(urls.length, 2, "--listen alone replaces the default address");
  for (const url of urls) assert.equal((await ask(url, "/health")).status, 200);
  const file = path.join(temporaryFolder(t), "braid.yaml");
  writeFileSync(file, "no-model: true\nlisten: [\"127.0.0.1:0\", \"127.0.0.1:0\"]\n");
  const configured = await serve(t, ["--config", file]);
  assert.equal(configured.lines.filter((line) => line.includes("listening on")).length, 3);
});

test("a Unix socket with its token", async (t) => {
  const folder = temporaryFolder(t);
  const socketPath = path.join(folder, "braid.sock");
  const server = await serve(t, ["--unix-socket", socketPath, "--unix-mode", "0660"]);
  assert.ok(server.lines.some((line) => line.endsWith(`unix:${socketPath}`)));
  assert.equal(statSync(socketPath).mode & 0o777, 0o660);
  assert.equal((await ask({ socketPath }, "/v1/models")).status, 401);
  const headers = { "X-Braid-Token": readFileSync(`${socketPath}.token`, "utf8").trim() };
  const local = await ask({ socketPath }, "/v1/completions", { body: story, headers });
  const remote = await ask(server.url, "/v1/completions", { body: story });
  assert.equal(JSON.parse(local.body).choices[0].text, JSON.parse(remote.body).choices[0].text);
  const curl = await run(t, "curl", ["-sS", "--unix-socket", socketPath, "-H", `X-Braid-Token: ${headers["X-Braid-Token"]}`, "http://braid/health"]);
  assert.equal(curl.stdout, '{"status":"ok"}');
  server.child.kill("SIGTERM");
  assert.deepEqual(await server.exited, { code: 0, signal: null });
  assert.ok(!existsSync(socketPath), "the socket goes with the server");
});

test("a Unix socket that another process serves, and a stale one", async (t) => {
  const socketPath = path.join(temporaryFolder(t), "braid.sock");
  const args = ["--no-model", "--unix-socket", socketPath, "--unix-token", "off"];
  const first = await serve(t, args);
  const second = await braid(t, ["serve", "--port", "0", ...args]);
  assert.equal(second.code, 1);
  assert.match(second.stderr, /another process listens there/);
  first.child.kill("SIGKILL");
  await first.exited;
  assert.ok(existsSync(socketPath));
  await serve(t, args);
  assert.equal((await ask({ socketPath }, "/health")).status, 200);
});

async function certificate(t, folder, name) {
  const [key, cert] = [path.join(folder, "key.pem"), path.join(folder, "cert.pem")];
  const made = await run(t, "openssl", ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
    "-subj", `/O=${name}/CN=localhost`, "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", key, "-out", cert]);
  assert.equal(made.code, 0, made.stderr);
  return ["--tls-cert", cert, "--tls-key", key];
}

test("HTTPS for node and curl, and a certificate that is replaced", async (t) => {
  const folder = temporaryFolder(t);
  const files = await certificate(t, folder, "first");
  const server = await serve(t, files);
  assert.match(server.url, /^https:/);
  const ca = readFileSync(files[1]);
  const whole = await ask(server.url, "/v1/completions", { body: story, ca });
  assert.equal(whole.status, 200);
  const streamed = await ask(server.url, "/v1/completions", { body: { ...story, stream: true }, ca });
  assert.ok(streamed.body.endsWith("data: [DONE]\n\n"));
  const many = await Promise.all(Array.from({ length: 32 }, () => ask(server.url, "/v1/completions", { body: story, ca })));
  for (const answer of many) assert.equal(JSON.parse(answer.body).choices[0].text, JSON.parse(whole.body).choices[0].text);
  const curl = await run(t, "curl", ["-sS", "--cacert", files[1], "--http1.1", `${server.url}/health`]);
  assert.equal(curl.stdout, '{"status":"ok"}', curl.stderr);
  await assert.rejects(ask(server.url, "/health"), /self.signed/i);
  await certificate(t, folder, "second");
  server.child.kill("SIGHUP");
  while (!server.errors.includes("SIGHUP")) await new Promise((resolve) => server.child.stderr.once("data", resolve));
  const renewed = await ask(server.url, "/v1/completions", { body: story, ca: readFileSync(files[1]) });
  assert.equal(renewed.status, 200);
  assert.equal((await braid(t, ["serve", "--port", "0", "--no-model", "--tls-cert", files[1]])).code, 2);
  const wrong = await braid(t, ["serve", "--port", "0", "--no-model", "--tls-cert", files[3], "--tls-key", files[1]]);
  assert.equal(wrong.code, 1);
  assert.match(wrong.stderr, /key\.pem for TLS/);
});
