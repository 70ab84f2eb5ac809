// Whether the simulated servers (cluster.cpp) get the requests that nginx would send them, with the file that deploy/ has for it.
//   BRAID_NGINX=/usr/sbin/nginx node perf/sched/routes.mjs build/release/perf/sched/cluster [SERVERS 50] [KEYS 2000]
import { spawnSync } from "node:child_process";
import http from "node:http";
import { balance } from "../../test/e2e/support/replicas.mjs";

const [program, servers = "50", count = "2000"] = process.argv.slice(2);
const cleanups = [];
const t = { after: (cleanup) => cleanups.push(cleanup) };
const listening = [];
for (let i = 0; i < Number(servers); ++i) {
  const server = http.createServer((request, response) => { request.resume().on("end", () => response.end(String(i))); });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  listening.push(server);
}
const ports = listening.map((server) => server.address().port);
const keys = Array.from({ length: Number(count) }, (_, i) => `conversation ${i * 7919}`);
const { stdout } = spawnSync(program, ["--routes", ...ports.map((port) => `127.0.0.1:${port}`)], { input: keys.join("\n") + "\n", encoding: "utf8", maxBuffer: 1 << 26 });
const expected = stdout.trim().split("\n");
const { url } = await balance(t, ports);
let differ = 0;
for (const [i, key] of keys.entries()) {
  const response = await fetch(url, { method: "POST", headers: { "X-Braid-Prefix": key }, body: "{}" });
  if ((await response.text()) !== expected[i]) ++differ;
}
console.log(JSON.stringify({ servers: ports.length, keys: keys.length, differ }));
for (const cleanup of cleanups.reverse()) await cleanup();
for (const server of listening) { server.closeAllConnections(); server.close(); }
process.exit(differ > 0 ? 1 : 0);
