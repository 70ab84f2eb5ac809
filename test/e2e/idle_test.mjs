// A server without work sleeps.
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";
import { serve } from "./support/processes.mjs";
import { eventually, post } from "./support/client.mjs";

const seconds = 4;
const most = seconds + 1;  // of a timer of one second

// How often each thread has gone to sleep so far.
function sleeps(pid) {
  const folder = `/proc/${pid}/task`;
  const count = (task) => Number(readFileSync(`${folder}/${task}/status`, "utf8").match(/^voluntary_ctxt_switches:\s+(\d+)/m)[1]);
  return new Map(readdirSync(folder).map((task) => [task, count(task)]));
}

test("without work no thread wakes more than once a second", async (t) => {
  const server = await serve(t);
  const answer = await post(`${server.url}/v1/completions`, { prompt: "Once upon a time", max_tokens: 20 });
  assert.equal(answer.status, 200);
  await answer.text();
  let awake;
  await eventually("it sleeps", async () => {
    const before = sleeps(server.child.pid);
    await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
    awake = [...sleeps(server.child.pid)].map(([task, count]) => [task, count - (before.get(task) ?? 0)]).filter(([, woken]) => woken > most);
    return awake.length === 0;
  }).catch((error) => assert.fail(`${error.message}: wake-ups in ${seconds} s by thread ${JSON.stringify(awake)}`));
});
