// A peer that neither answers nor says goodbye, as after a pulled cable: in a network of its own whose only link is taken down. Needs
// a kernel that lets users make one.
import assert from "node:assert/strict";
import { test } from "node:test";
import { run, serve } from "./support/processes.mjs";
import { eventually, frees_everything, metric, RawConnection } from "./support/client.mjs";

const link = async (t, state) => {
  const { code, stderr } = await run(t, "ip", ["link", "set", "lo", state]);
  assert.equal(code, 0, stderr);
};
const endless = { prompt: "Once upon a time", max_tokens: 900, ignore_eos: true, stream: true };

async function falls_silent(t, requests, shown) {
  await link(t, "up");
  const server = await serve(t, ["--isa", "scalar", "--max-batch", "1", "--tcp-user-timeout", "1s", "--tcp-keepalive", "1s"]);
  const clients = requests.map(() => new RawConnection(server.url));
  for (const [i, client] of clients.entries()) client.post("/v1/completions", requests[i]);
  await eventually("they are where they should be", async () => (await metric(server.url, shown)) > 0);
  await link(t, "down");
  await eventually("the server has noticed", () => (server.errors.match(/request aborted/g) ?? []).length >= clients.length, 60);
  await link(t, "up");
  for (const client of clients) client.leave("FIN");
  await eventually("it can be asked again", () => fetch(`${server.url}/health`).then((response) => response.ok, () => false));
  await frees_everything(server.url);
}

if (process.env.BRAID_SILENT_NETWORK) {
  test("while it is sent tokens", (t) => falls_silent(t, [endless], "braid_sequences_decoding"));
  test("while it waits in the queue and nothing is sent", (t) => falls_silent(t, [endless, { ...endless, stream: false }], "braid_sequences_waiting"));
} else {
  test("in a network that can be taken down", async (t) => {
    const { code } = await run(t, "unshare", ["-Urn", "true"]);
    if (code !== 0) return t.skip("users may not make networks of their own here (unshare -Urn)");
    const env = { ...process.env, BRAID_SILENT_NETWORK: "1", NODE_TEST_CONTEXT: undefined };
    const inner = await run(t, "unshare", ["-Urn", process.execPath, "--test", import.meta.filename], { env });
    assert.equal(inner.code, 0, inner.stdout + inner.stderr);
  });
}
