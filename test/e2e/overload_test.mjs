// A full queue answers 429 with Retry-After before any header of a stream, and what was accepted completes.
import assert from "node:assert/strict";
import { test } from "node:test";
import { serve } from "./support/processes.mjs";
import { collect, frees_everything, metric, post } from "./support/client.mjs";

test("a request of more answers than the queue holds is no matter of time", async (t) => {
  const server = await serve(t, ["--max-batch", "1", "--max-waiting", "2"]);
  const answers = (n) => post(`${server.url}/v1/completions`, { prompt: "Once", max_tokens: 4, n });
  assert.equal((await answers(2)).status, 200);
  assert.equal((await answers(3)).status, 400);
});

test("more requests than the queue holds", async (t) => {
  const server = await serve(t, ["--isa", "avx2", "--threads", "1", "--max-batch", "1", "--max-waiting", "2"]);
  const body = { prompt: "Once upon a time", max_tokens: 300, temperature: 0, ignore_eos: true, return_token_ids: true, stream: true };
  const responses = await Promise.all(Array.from({ length: 8 }, () => post(`${server.url}/v1/completions`, body)));
  const refused = responses.filter((response) => response.status === 429);
  const accepted = responses.filter((response) => response.status === 200);
  assert.equal(refused.length + accepted.length, 8);
  assert.ok(refused.length >= 1 && accepted.length >= 2, `${refused.length} refused, ${accepted.length} accepted`);
  for (const response of refused) {
    assert.ok(Number(response.headers.get("retry-after")) >= 1);
    const { error } = await response.json();
    assert.ok(error.message.length > 0 && error.type.length > 0);
  }
  const answers = await Promise.all(accepted.map((response) => collect(response)));
  for (const answer of answers) {
    assert.ok(answer.done);
    assert.deepEqual(answer.tokens, answers[0].tokens);
    assert.equal(answer.tokens.length, 300);
  }
  assert.equal(await metric(server.url, "braid_sequences_refused_total"), refused.length);
  await frees_everything(server.url);
});
