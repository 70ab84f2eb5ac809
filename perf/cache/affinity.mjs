// How much of what one server finds in its prefix cache several behind nginx find, with the file that deploy/ has for that.
//   BRAID_BINARY=build/release/braid BRAID_NGINX=/usr/sbin/nginx test/e2e/node_modules/.bin/node perf/cache/affinity.mjs
//     --replicas 8         servers behind nginx
//     --conversations 64   of four system prompts
//     --turns 6            of each
//     --clients 4          at once
import { parseArgs } from "node:util";
import { longModel, serve } from "../../test/e2e/support/processes.mjs";
import { balance, hit_rate } from "../../test/e2e/support/replicas.mjs";

const { values: options } = parseArgs({ options: {
  replicas: { type: "string", default: "8" }, conversations: { type: "string", default: "64" }, turns: { type: "string", default: "6" },
  clients: { type: "string", default: "4" } } });
const work = { count: Number(options.conversations), turns: Number(options.turns), at_once: Number(options.clients) };

// The same conversations for each way; a random server for each request is what no affinity gives.
async function measure(t, count, edit) {
  const model = longModel(t);
  const servers = [];
  for (let i = 0; i < count; ++i) servers.push(await serve(t, [model, "--kv-memory", "64M", "--threads", "1"]));
  const { url } = await balance(t, servers.map(({ port }) => port), edit);
  return hit_rate(url, work);
}

const cleanups = [];
const t = { after: (cleanup) => cleanups.push(cleanup) };
let failed = false;
try {
  const count = Number(options.replicas);
  const alone = await measure(t, 1);
  const by_prefix = await measure(t, count);
  const at_random = await measure(t, count, (text) => text.replace("hash $braid_prefix consistent;", "hash $request_id consistent;"));
  const of_alone = (rate) => Number((rate / alone).toFixed(3));
  console.log(JSON.stringify({ replicas: count, ...work, alone: Number(alone.toFixed(3)), by_prefix: of_alone(by_prefix), at_random: of_alone(at_random) }));
} catch (error) {
  console.error(error);
  failed = true;
}
for (const cleanup of cleanups.reverse()) await cleanup();
process.exit(failed ? 1 : 0);
