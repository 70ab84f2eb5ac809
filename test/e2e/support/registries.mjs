// A registry and a hub of ours on loopback, which can be slow, lie, break off, and count what they are asked for.
import { createHash, createPublicKey, verify } from "node:crypto";
import http from "node:http";
import https from "node:https";
import net from "node:net";
import { readFileSync } from "node:fs";
import path from "node:path";
import { run, sourceFolder, temporaryFolder } from "./processes.mjs";

export const demo = () => readFileSync(path.join(sourceFolder, "models/demo-q8_0.gguf"));
export const sha256 = (bytes) => createHash("sha256").update(bytes).digest("hex");
export const digestOf = (bytes) => `sha256:${sha256(bytes)}`;
const gitDigest = (bytes) => createHash("sha1").update(`blob ${bytes.length}\0`).update(bytes).digest("hex");

// A certificate for localhost that nobody vouches for but who names it.
export async function certificate(t) {
  const folder = temporaryFolder(t);
  const [cert, key] = ["cert.pem", "key.pem"].map((name) => path.join(folder, name));
  const made = await run(t, "openssl", ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
    "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", key, "-out", cert]);
  if (made.code !== 0) throw new Error(made.stderr);
  return { cert, key };
}

// Sends `bytes`, or the range of them that is asked for, as `faults` want it: { cutAfter, cuts, noRanges, delay, short, wrong, status }.
async function sendBytes(request, response, bytes, faults) {
  if (faults.statuses?.length) return response.writeHead(faults.statuses.shift()).end();
  let body = faults.wrong ? Buffer.from(bytes).fill(0x55, bytes.length - 10) : bytes;
  if (faults.short) body = body.subarray(0, body.length - faults.short);
  const range = faults.noRanges ? null : request.headers.range?.match(/^bytes=(\d+)-(\d*)$/);
  let part = body;
  const headers = { "Content-Type": "application/octet-stream" };
  if (range) {
    const begin = Number(range[1]);
    if (begin >= body.length) return response.writeHead(416).end();
    part = body.subarray(begin, range[2] === "" ? body.length : Number(range[2]) + 1);
    headers["Content-Range"] = `bytes ${begin}-${begin + part.length - 1}/${body.length}`;
  }
  headers["Content-Length"] = part.length;
  response.writeHead(range ? 206 : 200, headers);
  response.setMaxListeners(0);
  const step = faults.step ?? 256 * 1024;
  for (let at = 0; at < part.length; at += step) {
    if (faults.cuts > 0 && at >= faults.cutAfter) {
      faults.cuts -= 1;
      return response.destroy();
    }
    if (response.destroyed) return undefined;
    if (!response.write(part.subarray(at, at + step))) await new Promise((resolve) => response.once("drain", resolve).once("close", resolve));
    if (faults.delay) await new Promise((resolve) => setTimeout(resolve, faults.delay));
  }
  return response.end();
}

async function listen(t, handler, tls) {
  const requests = [];
  const note = (request, response) => {
    requests.push({ method: request.method, url: request.url, range: request.headers.range, authorization: request.headers.authorization });
    Promise.resolve(handler(request, response)).catch(() => response.destroy());
  };
  const server = tls ? https.createServer({ cert: readFileSync(tls.cert), key: readFileSync(tls.key) }, note) : http.createServer(note);
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => { server.closeAllConnections(); server.close(); });
  const host = tls ? `localhost:${server.address().port}` : `127.0.0.1:${server.address().port}`;
  return { url: `${tls ? "https" : "http"}://${host}`, host, requests };
}

// A proxy that hands on what it is asked for, and notes it; `credentials` ("name:secret"): of those who may ask.
export async function proxy(t, { credentials } = {}) {
  const asked = [], sockets = new Set();
  const wanted = credentials && `Basic ${Buffer.from(credentials).toString("base64")}`;
  const may = (request) => !wanted || request.headers["proxy-authorization"] === wanted;
  const server = http.createServer((request, response) => {
    if (!may(request)) return response.writeHead(407, { "Proxy-Authenticate": "Basic realm=\"p\"" }).end();
    asked.push(`${request.method} ${request.url}`);
    const { "proxy-authorization": secret, "proxy-connection": kept, ...headers } = request.headers;
    const onward = http.request(request.url, { method: request.method, headers }, (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      answer.pipe(response);
    });
    onward.on("error", () => response.destroy());
    return request.pipe(onward);
  });
  server.on("connect", (request, socket, head) => {
    socket.on("error", () => {});
    if (!may(request)) return socket.end("HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=\"p\"\r\n\r\n");
    asked.push(`CONNECT ${request.url}`);
    const onward = net.connect(Number(request.url.split(":").at(-1)), "127.0.0.1", () => {
      socket.write("HTTP/1.1 200 Connection established\r\n\r\n");
      onward.write(head);
      socket.pipe(onward).pipe(socket);
    });
    onward.on("error", () => socket.destroy());
    return sockets.add(socket).add(onward);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => { for (const socket of sockets) socket.destroy(); server.closeAllConnections(); server.close(); });
  return { host: `127.0.0.1:${server.address().port}`, asked };
}

async function bodyOf(request) {
  const parts = [];
  for await (const part of request) parts.push(part);
  return Buffer.concat(parts);
}

// Whose key has signed this request for a token, as "ssh-ed25519 AAAA…"; undefined: nobody's.
function signerOf(request, url) {
  const [key, signature] = (request.headers.authorization ?? "").split(":").map((part) => Buffer.from(part, "base64"));
  if (key.length !== 51 || signature?.length !== 64) return undefined;
  const spki = Buffer.concat([Buffer.from("302a300506032b6570032100", "hex"), key.subarray(19)]);
  const words = `GET,${url}${request.url},${Buffer.from(sha256("")).toString("base64")}`;
  const isRight = verify(null, Buffer.from(words), createPublicKey({ key: spki, format: "der", type: "spki" }), signature);
  return isRight ? `ssh-ed25519 ${key.toString("base64")}` : undefined;
}

// Speaks Ollama's protocol. `models`: "owner/name:tag" to a manifest's text. `token`: it wants one that anybody gets; `keys`: one that is for
// owners of these alone. `realm`: where that is, if not here.
export async function registry(t, { tls, token, keys, realm } = {}) {
  const blobs = new Map(), models = new Map(), faults = {}, nonces = new Set();
  const add = (bytes) => { blobs.set(digestOf(bytes), bytes); return digestOf(bytes); };
  const server = await listen(t, async (request, response) => {
    const url = new URL(request.url, "http://x");
    if (url.pathname === "/token") {
      const { nonce, ts, service } = Object.fromEntries(url.searchParams);
      const isRight = /^[\w-]{22}$/.test(nonce) && !nonces.has(nonce) && Math.abs(Date.now() / 1000 - Number(ts)) < 86400 && service === "s p";
      nonces.add(nonce);
      if (!isRight || (keys && !keys.has(signerOf(request, server.url)))) return response.writeHead(401).end();
      return response.end(JSON.stringify({ token: `for ${url.searchParams.getAll("scope").join(" and ")}` }));
    }
    const right = ["GET", "HEAD"].includes(request.method) ? "pull" : "push";
    if ((token || keys) && request.headers.authorization !== `Bearer for ${right} and more`)
      return response.writeHead(401, { "WWW-Authenticate": `Bearer realm="${realm?.() ?? server.url}/token",service="s p",scope="${right} more"` }).end();
    const [, owner, name, kind, rest] = url.pathname.match(/^\/v2\/([^/]+)\/([^/]+)\/(manifests|blobs)\/(.*)$/) ?? [];
    if (kind === "manifests") {
      const key = `${owner}/${name}:${rest}`;
      if (request.method === "PUT") { models.set(key, (await bodyOf(request)).toString()); return response.writeHead(201).end(); }
      return models.has(key) ? response.end(models.get(key)) : response.writeHead(404).end();
    }
    if (kind !== "blobs") return response.writeHead(404).end();
    if (request.method === "POST") return response.writeHead(202, { Location: `/v2/${owner}/${name}/blobs/uploads/1` }).end();
    if (request.method === "PUT") {
      const bytes = await bodyOf(request);
      return response.writeHead(add(bytes) === url.searchParams.get("digest") ? 201 : 400).end();
    }
    if (!blobs.has(rest)) return response.writeHead(404).end();
    if (request.method === "HEAD") return response.end();
    return sendBytes(request, response, blobs.get(rest), blobs.get(rest).length > 10000 ? faults : {});
  }, tls);
  // A model of these weights, with a system prompt if there is one.
  const put = (key, weights, system) => {
    const layer = (type, bytes) => ({ mediaType: `application/vnd.ollama.image.${type}`, digest: add(bytes), size: bytes.length });
    const config = Buffer.from("{}");
    const layers = [layer("model", weights)];
    if (system) layers.push(layer("system", Buffer.from(system)));
    const manifest = { schemaVersion: 2, mediaType: "application/vnd.docker.distribution.manifest.v2+json",
      config: { mediaType: "application/vnd.docker.container.image.v1+json", digest: add(config), size: config.length }, layers };
    models.set(key, JSON.stringify(manifest));
    return manifest;
  };
  return Object.assign(server, { blobs, models, faults, put });
}

// Speaks the hub's tree and resolve routes. `files`: path to bytes, of one repository "owner/name".
export async function hub(t, files, { token } = {}) {
  const faults = {};
  const extra = [];
  const server = await listen(t, async (request, response) => {
    const url = new URL(request.url, "http://x");
    if (token && request.headers.authorization !== `Bearer ${token}`) return response.writeHead(401).end();
    if (url.pathname === "/api/models/owner/name/tree/main") {
      const list = Object.entries(files).map(([file, bytes]) => ({ type: "file", path: file, size: bytes.length, oid: gitDigest(bytes),
        ...(bytes.length > 10000 || file.endsWith(".gguf") ? { lfs: { oid: sha256(bytes), size: bytes.length } } : {}) }));
      return response.end(JSON.stringify([...list, ...extra]));
    }
    const file = decodeURIComponent(url.pathname.replace("/owner/name/resolve/main/", ""));
    if (files[file] === undefined) return response.writeHead(404).end();
    return sendBytes(request, response, files[file], faults);
  });
  return Object.assign(server, { faults, extra });
}
