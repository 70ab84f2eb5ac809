// A thousand streams at once, from the load generator in a process of its own: each answer is the one that its prompt gets alone.
import assert from "node:assert/strict";
import { test } from "node:test";
import { braid, serve } from "./support/processes.mjs";
import { eventually, frees_everything, metric } from "./support/client.mjs";

const streams = 1000;

test("a thousand streams are open at one moment, and all end with the right text", async (t) => {
  // The first answers end after 96 steps, long after the last request is in: guessed from others like them they would be over sooner.
  const server = await serve(t, ["--kv-memory", "128MiB", "--speculate", "off"]);
  const load = braid(t, ["bench", "serve", "--base-url", server.url, "--num-prompts", `${streams}`, "--input-len", "8", "--output-len", "96",
    "--ignore-eos", "--distinct", "8", "--verify"]);
  await eventually("all streams are open", async () => (await metric(server.url, "braid_open_streams")) === streams, 200);
  const { code, stdout, stderr } = await load;
  assert.equal(code, 0, `${stdout}\n${stderr}`);
  assert.match(stdout, new RegExp(`Completed requests +${streams}\n`));
  await frees_everything(server.url);
});
