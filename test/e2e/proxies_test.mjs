// braid behind the proxies that deploy/ has files for: streams, also over HTTP/2, clients that go, large bodies, a server that is
// upgraded, starts anew or dies, and requests that two parsers could take for different ones.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import http from "node:http";
import net from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { events, post } from "./support/client.mjs";
import { ask } from "./support/connections.mjs";
import { session, text_of } from "./support/http2.mjs";
import { Load } from "./support/load.mjs";
import { freePort, nginx, Process, run, serve, sourceFolder, temporaryFolder } from "./support/processes.mjs";

const accepts = (port) => new Promise((resolve) => {
  const socket = net.connect(port, "127.0.0.1");
  socket.on("connect", () => { socket.destroy(); resolve(true); });
  socket.on("error", () => resolve(false));
});

// Starts what `command` is on a file that has `text`, which listens on `port`.
async function run_proxy(t, folder, name, text, port, command) {
  const config = join(folder, name);
  writeFileSync(config, text);
  const [program, ...args] = command(config);
  const started = new Process(t, program, args, { env: { ...process.env, HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder } });
  while (!(await accepts(port))) {
    assert.equal(started.child.exitCode, null, started.errors);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

const shipped = (file, upstream) => readFileSync(join(sourceFolder, "deploy", file), "utf8").replaceAll("127.0.0.1:8000", `127.0.0.1:${upstream}`);
function replaced(text, from, to) {
  assert.ok(text.includes(from), from);
  return text.replace(from, to);
}

async function certificate(t) {
  const folder = temporaryFolder(t);
  const [key, crt] = [join(folder, "key"), join(folder, "crt")];
  const made = await run(t, "openssl", ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", crt, "-days", "2", "-subj", "/CN=localhost"]);
  assert.equal(made.code, 0, made.stderr);
  return { folder, key, crt };
}

const haproxy = (config) => [process.env.BRAID_HAPROXY, "-db", "-f", config];
const caddy = (config) => [process.env.BRAID_CADDY, "run", "--config", config, "--adapter", "caddyfile"];

// nginx with one of the shipped sites, and nginx's own defaults otherwise.
function run_nginx(t, folder, site, port) {
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((kind) => `${kind}_temp_path ${folder}/${kind};`).join("\n");
  const text = `daemon off;\nmaster_process off;\npid ${folder}/pid;\nerror_log stderr;\nevents {}\nhttp {\naccess_log off;\n${temporary}\n${site}\n}\n`;
  return run_proxy(t, folder, "nginx.conf", text, port, (config) => [process.env.BRAID_NGINX, "-p", folder, "-c", config]);
}

// nginx in front of several servers with TLS and HTTP/2; returns its URL.
async function balancer(t, first, second) {
  const { folder, key, crt } = await certificate(t);
  const port = await freePort();
  const site = replaced(shipped("nginx/braid-upstreams.conf"), "listen 443 ssl", `listen 127.0.0.1:${port} ssl`)
    .replaceAll("127.0.0.1:8001", `127.0.0.1:${first}`).replaceAll("127.0.0.1:8002", `127.0.0.1:${second}`)
    .replace("/etc/nginx/braid.crt", crt).replace("/etc/nginx/braid.key", key);
  await run_nginx(t, folder, site, port);
  return `https://127.0.0.1:${port}`;
}

// The shipped files with other ports, by the server's; each returns its URL.
const proxies = { nginx };
const over_http2 = { nginx: (t, upstream) => balancer(t, upstream, upstream) };
if (process.env.BRAID_HAPROXY) {
  proxies.HAProxy = async (t, upstream) => {
    const port = await freePort();
    await run_proxy(t, temporaryFolder(t), "braid.cfg", replaced(shipped("haproxy/braid.cfg", upstream), "bind :80", `bind 127.0.0.1:${port}`), port, haproxy);
    return `http://127.0.0.1:${port}`;
  };
  over_http2.HAProxy = async (t, upstream) => {
    const { folder, key, crt } = await certificate(t);
    const port = await freePort();
    const pem = join(folder, "braid.pem");
    writeFileSync(pem, readFileSync(crt, "utf8") + readFileSync(key, "utf8"));
    const text = shipped("haproxy/braid.cfg", upstream);
    const [, line] = text.match(/# For HTTPS and HTTP\/2 .*: (bind .*)/);
    const secure = replaced(replaced(line, ":443", `127.0.0.1:${port}`), "/etc/haproxy/braid.pem", pem);
    await run_proxy(t, folder, "braid.cfg", replaced(text, "bind :80", secure), port, haproxy);
    return `https://127.0.0.1:${port}`;
  };
}
if (process.env.BRAID_CADDY) {
  const listens = (text, line) => replaced(text, "\n:80 {", `\n{\n\tadmin off\n}\n${line}`);
  proxies.Caddy = async (t, upstream) => {
    const port = await freePort();
    await run_proxy(t, temporaryFolder(t), "Caddyfile", listens(shipped("caddy/Caddyfile", upstream), `http://127.0.0.1:${port} {`), port, caddy);
    return `http://127.0.0.1:${port}`;
  };
  over_http2.Caddy = async (t, upstream) => {
    const { folder, key, crt } = await certificate(t);
    const port = await freePort();
    await run_proxy(t, folder, "Caddyfile", listens(shipped("caddy/Caddyfile", upstream), `https://127.0.0.1:${port} {\n\ttls ${crt} ${key}`), port, caddy);
    return `https://127.0.0.1:${port}`;
  };
}

// Another request arrives once the proxy has seen that its server is up.
async function until_ready(url) {
  const is_ready = () => ask(url, "/readyz", { rejectUnauthorized: false }).then(({ status }) => status === 200, () => false);
  while (!(await is_ready())) await new Promise((resolve) => setTimeout(resolve, 20));
}

// Until nothing runs on the server.
async function until_idle(server) {
  while ((await (await fetch(`${server.url}/slots`)).json()).some((slot) => slot.request)) await new Promise((resolve) => setTimeout(resolve, 20));
}
const cancelled = async (server) => (await (await fetch(`${server.url}/metrics`)).text()).match(/^braid_sequences_cancelled_total (\d+)$/m)[1];

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
    await until_idle(server);
    assert.equal(await cancelled(server), "1");
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

  test(`${name}: no answer is lost while successors take the server over`, async (t) => {
    const args = ["--takeover", join(temporaryFolder(t), "control"), "--kv-memory", "64M", "--drain-timeout", "120s"];
    let server = await serve(t, args);
    const url = await start(t, server.port);
    await until_ready(url);
    const path = "/v1/completions";
    const body = { prompt: "Once upon a time", max_tokens: 12, temperature: 0, ignore_eos: true };
    const expected = JSON.parse((await ask(url, path, { body })).body).choices[0].text;
    const kept = new http.Agent({ keepAlive: true });
    const load = new Load(6, async (i) => {
      const stream = i % 2 === 0;
      const { status, headers, body: text } = await ask(url, path, { body: { ...body, stream }, agent: i < 3 && kept });
      assert.equal(status, 200, text);
      if (stream) assert.ok(text.endsWith("data: [DONE]\n\n") && !text.includes('"error"'), JSON.stringify([headers, text]));
      else assert.equal(JSON.parse(text).choices[0].text, expected);
    });
    await load.another(12);
    for (let generation = 0; generation < 2; ++generation) {
      const long = ask(url, path, { body: { ...body, max_tokens: 900, stream: true } });  // finished by the one that began it
      const successor = await serve(t, args);
      assert.deepEqual(await server.exited, { code: 0, signal: null });
      const { body: text } = await long;
      assert.ok(text.endsWith("data: [DONE]\n\n") && !text.includes('"error"'), text.slice(-300));
      await load.another(12);
      server = successor;
    }
    await load.stop();
    kept.destroy();
  });

  test(`${name}: an answer that runs is finished by a server that is told to end, and one that dies leaves no client waiting`, async (t) => {
    const port = await freePort();
    const servers = () => serve(t, ["--kv-memory", "64M", "--drain-timeout", "120s"], { port: ["--port", String(port)] });
    const begin = async (url) => {
      const response = await post(`${url}/v1/chat/completions`, chat({ ...endless }));
      assert.equal(response.status, 200);
      const parts = response.body[Symbol.asyncIterator]();
      let text = Buffer.from((await parts.next()).value).toString();
      return async () => {
        try {
          for await (const part of { [Symbol.asyncIterator]: () => parts }) text += Buffer.from(part).toString();
          return { text, whole: text.endsWith("data: [DONE]\n\n") };
        } catch (error) { return { text, whole: false, error }; }
      };
    };
    const first = await servers();
    const url = await start(t, port);
    await until_ready(url);
    const rest = await begin(url);
    first.child.kill("SIGTERM");
    const { text, whole } = await rest();
    assert.equal(whole && !text.includes('"error"'), true, text.slice(-300));
    assert.deepEqual(await first.exited, { code: 0, signal: null });
    const second = await servers();
    await until_ready(url);
    const cut = await begin(url);
    second.child.kill("SIGKILL");
    assert.equal((await cut()).whole, false);
    await servers();
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

for (const [name, start] of Object.entries(over_http2)) {
  test(`${name} over HTTP/2: streams side by side come token by token, and one that is reset ends its request alone`, async (t) => {
    const server = await serve(t, ["--kv-memory", "64M"]);
    const url = await start(t, server.port);
    await until_ready(url);
    const send = session(t, url);
    const path = "/v1/chat/completions";
    const left = await send(path, chat(endless));
    const stays = await send(path, chat({ ...endless, max_tokens: 200, temperature: 0 }));
    const pieces = left.body[Symbol.asyncIterator]();
    for (let i = 0; i < 5; ++i) assert.equal((await pieces.next()).done, false);
    left.leave();
    const tokens = [];
    for await (const event of events(stays)) tokens.push(event);
    assert.equal(tokens.at(-1), "[DONE]");
    assert.ok(tokens.length >= 100, `${tokens.length}`);  // some hold several tokens
    await until_idle(server);
    assert.equal(await cancelled(server), "1");
    const refused = await send(path, chat({ temperature: -1 }));
    assert.equal(refused.status, 400);
    assert.match(JSON.parse(await text_of(refused)).error.message, /temperature/);
    const large = await send("/tokenize", { content: "a ".repeat(1_000_000) });
    assert.equal(large.status, 200);
    assert.ok(JSON.parse(await text_of(large)).tokens.length > 1000);
  });

  test(`${name} over HTTP/2: a session outlives the server that is taken over`, async (t) => {
    const args = ["--takeover", join(temporaryFolder(t), "control"), "--kv-memory", "64M", "--drain-timeout", "120s"];
    const server = await serve(t, args);
    const url = await start(t, server.port);
    await until_ready(url);
    const send = session(t, url);
    const load = new Load(6, async () => {
      // Long enough that all are fewer than the thousand after which nginx ends a session.
      const answer = await send("/v1/completions", { prompt: "Once upon a time", max_tokens: 200, ignore_eos: true, stream: true });
      const text = await text_of(answer);
      assert.equal(answer.status, 200, text);
      assert.ok(text.endsWith("data: [DONE]\n\n") && !text.includes('"error"'), text);
    });
    await load.another(12);
    await serve(t, args);
    assert.deepEqual(await server.exited, { code: 0, signal: null });
    await load.another(12);
    await load.stop();
  });
}

test("nginx sends what has the same prefix to the same server, and other requests to the one with the fewest", async (t) => {
  const servers = [await serve(t, ["--kv-memory", "64M", "--alias", "one"]), await serve(t, ["--kv-memory", "64M", "--alias", "two"])];
  const url = await balancer(t, servers[0].port, servers[1].port);
  const model_of = async (prefix) => {
    const header = prefix ? ["-H", `X-Braid-Prefix: ${prefix}`] : [];
    const { stdout, code, stderr } = await run(t, "curl", ["-sS", "--http2", "-k", "-w", "\n%{http_version}", ...header, `${url}/v1/models`]);
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
