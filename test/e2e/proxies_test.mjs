// braid behind the proxies that deploy/ has files for: streams, clients that go, large bodies, a server that starts anew, and requests that
// two parsers could take for different ones.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import net from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { events, post } from "./support/client.mjs";
import { freePort, nginx, Process, run, serve, sourceFolder, temporaryFolder } from "./support/processes.mjs";

const accepts = (port) => new Promise((resolve) => {
  const socket = net.connect(port, "127.0.0.1");
  socket.on("connect", () => { socket.destroy(); resolve(true); });
  socket.on("error", () => resolve(false));
});

// The shipped file with other ports; `start` says how the program is run with it.
async function proxy(t, file, port_line, upstream, start) {
  const folder = temporaryFolder(t);
  const port = await freePort();
  const text = readFileSync(join(sourceFolder, "deploy", file), "utf8").replace(port_line(80), port_line(port)).replaceAll("127.0.0.1:8000", `127.0.0.1:${upstream}`);
  const config = join(folder, file.split("/").pop());
  writeFileSync(config, text);
  const [command, ...args] = start(config);
  const program = new Process(t, command, args, { env: { ...process.env, HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder } });
  while (!(await accepts(port))) {
    assert.equal(program.child.exitCode, null, program.errors);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return `http://127.0.0.1:${port}`;
}

const proxies = { nginx };
if (process.env.BRAID_HAPROXY)
  proxies.HAProxy = (t, port) => proxy(t, "haproxy/braid.cfg", (at) => `bind ${at === 80 ? ":80" : `127.0.0.1:${at}`}`, port, (config) => [process.env.BRAID_HAPROXY, "-db", "-f", config]);
if (process.env.BRAID_CADDY)
  proxies.Caddy = (t, port) => proxy(t, "caddy/Caddyfile", (at) => (at === 80 ? "\n:80 {" : `\n{\n\tadmin off\n}\nhttp://127.0.0.1:${at} {`), port,
    (config) => [process.env.BRAID_CADDY, "run", "--config", config, "--adapter", "caddyfile"]);

// Another request arrives once the proxy has seen that its server is up.
async function until_ready(url) {
  while ((await fetch(`${url}/readyz`).catch(() => ({ status: 0 }))).status !== 200) await new Promise((resolve) => setTimeout(resolve, 20));
}

const chat = (fields) => ({ messages: [{ role: "user", content: "Tell me a story." }], ...fields });
const endless = { max_tokens: 900, ignore_eos: true, stream: true };

for (const [name, start] of Object.entries(proxies)) {
  test(`${name}: tokens come one by one, and a client that goes ends its request`, async (t) => {
    const server = await serve(t, ["--kv-memory", "64M"]);
    const url = await start(t, server.port);
    await until_ready(url);
    const stop = new AbortController();
    const response = await fetch(`${url}/v1/chat/completions`, {
      method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(chat(endless)), signal: stop.signal });
    const reader = response.body.getReader();
    for (let pieces = 0; pieces < 5; ++pieces) assert.equal((await reader.read()).done, false);
    stop.abort();
    for (;;) {  // nothing runs in the end
      const slots = await (await fetch(`${server.url}/slots`)).json();
      if (!slots.some((slot) => slot.request)) break;
    }
    assert.match(await (await fetch(`${server.url}/metrics`)).text(), /^braid_sequences_cancelled_total 1$/m);
  });

  test(`${name}: whole answers, the longest bodies and refusals come through`, async (t) => {
    const server = await serve(t, ["--kv-memory", "64M"]);
    const url = await start(t, server.port);
    await until_ready(url);
    const tokens = [];
    const stream = await post(`${url}/v1/chat/completions`, chat({ stream: true, max_tokens: 20 }));
    assert.equal(stream.status, 200, stream.status === 200 ? "" : await stream.text());
    for await (const event of events(stream)) tokens.push(event);
    assert.equal(tokens.at(-1), "[DONE]");
    const large = await post(`${url}/tokenize`, { content: "a ".repeat(1_000_000) });
    assert.equal(large.status, 200);
    assert.equal((await large.json()).tokens.length > 1000, true);
    const refused = await post(`${url}/v1/chat/completions`, chat({ temperature: -1 }));
    assert.equal(refused.status, 400);
    assert.match((await refused.json()).error.message, /temperature/);
  });

  test(`${name}: a server that starts anew is found again`, async (t) => {
    const port = await freePort();
    const first = await serve(t, ["--kv-memory", "64M"], { port: ["--port", String(port)] });
    const url = await start(t, port);
    await until_ready(url);
    first.child.kill("SIGTERM");
    await first.exited;
    assert.ok([502, 503].includes((await fetch(`${url}/v1/models`)).status));
    await serve(t, ["--kv-memory", "64M"], { port: ["--port", String(port)] });
    await until_ready(url);
    assert.equal((await post(`${url}/v1/chat/completions`, chat({ max_tokens: 4 }))).status, 200);
  });

  test(`${name}: no request is hidden in another`, async (t) => {
    const server = await serve(t, ["--kv-memory", "64M", "--access-log"]);
    const url = await start(t, server.port);
    await until_ready(url);
    const hidden = "GET /hidden HTTP/1.1\r\nHost: a\r\n\r\n";
    const lines = [
      `Content-Length: ${hidden.length}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${hidden}`,
      `Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n${hidden}`,
      `Transfer-Encoding : chunked\r\nContent-Length: ${hidden.length}\r\n\r\n${hidden}`,
      `Transfer-Encoding:\u000bchunked\r\nContent-Length: ${hidden.length}\r\n\r\n${hidden}`,
      `Transfer-Encoding: xchunked\r\nContent-Length: ${hidden.length}\r\n\r\n${hidden}`,
      `Transfer-Encoding: chunked, identity\r\nContent-Length: ${hidden.length}\r\n\r\n${hidden}`,
      `Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\nContent-Length: ${hidden.length}\r\n\r\n${hidden}`,
      `Content-Length: ${hidden.length}\r\nContent-Length: 0\r\n\r\n${hidden}`,
      `Content-Length: 0\r\nContent-Length: ${hidden.length}\r\n\r\n${hidden}`,
      `Content-Length: +${hidden.length}\r\n\r\n${hidden}`,
      `Content-Length: 0x${hidden.length.toString(16)}\r\n\r\n${hidden}`,
      `X: y\nContent-Length: ${hidden.length}\r\n\r\n${hidden}`,
      `X: y\r\n Content-Length: ${hidden.length}\r\n\r\n${hidden}`,
      `Transfer-Encoding: chunked\r\n\r\n${hidden.length.toString(16)};a="\r\n"\r\n${hidden}\r\n0\r\n\r\n`,
    ];
    for (const line of lines) {
      const socket = net.connect(Number(new URL(url).port), "127.0.0.1");
      let answer = "";
      socket.on("data", (data) => { answer += data; });
      socket.on("error", () => {});
      socket.end(`POST /v1/abort HTTP/1.1\r\nHost: a\r\nConnection: close\r\n${line}`);
      await new Promise((resolve) => socket.on("close", resolve));
      // Whatever the proxy makes of it: one answer at most, and never one to what was in the body.
      assert.ok(answer.split("HTTP/1.1 ").length <= 2, JSON.stringify([line, answer]));
    }
    assert.equal((await fetch(`${url}/v1/models`)).status, 200);
    server.child.kill("SIGTERM");
    await server.exited;
    assert.match(server.errors, /\/models/);
    assert.doesNotMatch(server.errors, /hidden/);
  });
}

test("nginx sends what has the same prefix to the same server, and other requests to the one with the fewest", async (t) => {
  const folder = temporaryFolder(t);
  const servers = [await serve(t, ["--kv-memory", "64M", "--alias", "one"]), await serve(t, ["--kv-memory", "64M", "--alias", "two"])];
  const port = await freePort();
  const made = await run(t, "openssl", ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", join(folder, "key"), "-out", join(folder, "crt"), "-days", "2", "-subj", "/CN=localhost"]);
  assert.equal(made.code, 0, made.stderr);
  const site = readFileSync(join(sourceFolder, "deploy/nginx/braid-upstreams.conf"), "utf8").replace("listen 443 ssl", `listen 127.0.0.1:${port} ssl`)
    .replaceAll("127.0.0.1:8001", `127.0.0.1:${servers[0].port}`).replaceAll("127.0.0.1:8002", `127.0.0.1:${servers[1].port}`)
    .replace("/etc/nginx/braid.crt", join(folder, "crt")).replace("/etc/nginx/braid.key", join(folder, "key"));
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((kind) => `${kind}_temp_path ${folder}/${kind};`).join("\n");
  writeFileSync(join(folder, "nginx.conf"), `daemon off;\nmaster_process off;\npid ${folder}/pid;\nerror_log stderr;\nevents {}\nhttp {\naccess_log off;\n${temporary}\n${site}\n}\n`);
  const program = new Process(t, process.env.BRAID_NGINX, ["-p", folder, "-c", join(folder, "nginx.conf")]);
  while (!(await accepts(port))) assert.equal(program.child.exitCode, null, program.errors);
  const model_of = async (prefix) => {
    const header = prefix ? ["-H", `X-Braid-Prefix: ${prefix}`] : [];
    const { stdout, code, stderr } = await run(t, "curl", ["-sS", "--http2", "-k", "-w", "\n%{http_version}", ...header, `https://127.0.0.1:${port}/v1/models`]);
    assert.equal(code, 0, stderr);
    const [body, version] = stdout.split("\n");
    assert.equal(version, "2");
    return JSON.parse(body).data[0].id;
  };
  const found = new Set();
  for (let i = 0; i < 12; ++i) {
    const first = await model_of(`digest-${i}`);
    assert.equal(await model_of(`digest-${i}`), first);
    found.add(first);
  }
  assert.deepEqual([...found].sort(), ["one", "two"]);
  servers[0].child.kill("SIGTERM");
  await servers[0].exited;
  for (let i = 0; i < 12; ++i) assert.equal(await model_of(`digest-${i}`), "two");
  assert.equal(await model_of(""), "two");
});
