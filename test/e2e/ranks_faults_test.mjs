// Each rank of a group is killed, or hangs, in each phase; and is cut off from the others, where ranks have networks of their own: what runs
// ends with the reason, nothing hangs, and the group that comes back gives the same answers.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmodSync, writeFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { longModel, serve, temporaryFolder } from "./support/processes.mjs";
import { safetensors } from "./support/adapters.mjs";
import { collect, eventually, metric, post } from "./support/client.mjs";
import { byNumber, isThere, ranksOf, restarted } from "./support/ranks.mjs";

// Passes are so small that even a busy machine takes far less than the timeout for one, which is what is waited for in each fault that nothing
// but a timeout finds.
const modest = ["--kv-memory", "256MiB", "--threads", "2", "--ranks", "2", "--ranks-timeout", "5s", "--max-batch", "8", "--max-batch-tokens", "64", "--no-warmup", "--speculate", "off", "--prefix-cache", "off"];

const wish = (more = {}) => ({ prompt: "Once upon a time", max_tokens: 40, temperature: 0.8, seed: 7, ignore_eos: true, return_token_ids: true, ...more });
// A pass that takes too long all the same is a fault more, and what was asked is asked again.
async function answer(server) {
  for (let left = 5; ; --left) {
    const { choices, error } = await (await post(`${server.url}/v1/completions`, wish())).json();
    if (!error) return choices[0].token_ids;
    assert.ok(left > 0 && /is loaded again/.test(error.message), JSON.stringify(error));
  }
}
const stream = (server, more) => post(`${server.url}/v1/completions`, wish({ stream: true, ...more })).then(collect);

// What runs when the fault comes, and a promise of how it ends.
const phases = {
  idle: async () => [],
  prefill: async (server) => {
    const running = stream(server, { prompt: "The fox went on and on. ".repeat(3000) });
    await eventually("a prompt is read", async () => (await metric(server.url, "braid_sequences_prefilling")) === 1, 120);
    return [running];
  },
  decode: async (server) => {
    const running = [0, 1, 2].map((seed) => stream(server, { max_tokens: 3000, seed }));
    await eventually("all are answered", async () => (await metric(server.url, "braid_sequences_decoding")) === 3, 120);
    return running;
  },
};

for (const signal of ["SIGKILL", "SIGSTOP"]) {
  test(`a rank that gets ${signal} in any phase`, async (t) => {
    const server = await serve(t, [longModel(t), ...modest]);
    const expected = await answer(server);
    for (const [phase, begin] of Object.entries(phases)) {
      for (const rank of [0, 1]) {
        const running = await begin(server);
        const before = byNumber(ranksOf(server));
        process.kill(before[rank], signal);
        // One that hangs while nobody asks is found by whoever asks next.
        if (phase === "idle" && signal === "SIGSTOP") running.push(stream(server, {}));
        for (const { error } of await Promise.all(running)) assert.match(error.message, /is loaded again: .*rank/, `${phase}, rank ${rank}`);
        await restarted(server, before);
        assert.ok(!before.some(isThere), `${phase}, rank ${rank}: none is left`);
        assert.deepEqual(await answer(server), expected, `${phase}, rank ${rank}`);
      }
    }
  });

  test(`a rank that gets ${signal} while it loads`, async (t) => {
    const server = await serve(t, [longModel(t), ...modest]);
    const expected = await answer(server);
    for (const rank of [0, 1]) {
      const before = byNumber(ranksOf(server));
      process.kill(before[0], "SIGKILL");
      await eventually("others load", () => {
        const now = ranksOf(server);
        return now.length === 2 && now.every((pid) => !before.includes(pid));
      }, 120);
      const loading = byNumber(ranksOf(server));
      process.kill(loading[rank], signal);
      await restarted(server, loading);
      assert.ok(!loading.some(isThere), "none is left");
      assert.deepEqual(await answer(server), expected, `rank ${rank}`);
    }
  });
}

// It comes back with the newer weights and nothing else, whatever of it is lost again on the way.
test("a rank that is lost while its group gets the newer weights again", async (t) => {
  const server = await serve(t, [longModel(t), ...modest]);
  const expected = await answer(server);
  for (const [name, shape] of [["output_norm.weight", [512]], ["blk.3.attn_q.weight", [512, 512]]]) {
    const values = Array.from({ length: shape.reduce((a, b) => a * b) }, (_, i) => 0.5 + Math.sin(i) / 4);
    const body = safetensors({ [name]: { shape, values } }, { partial: "true" });
    const response = await fetch(`${server.url}/update_weights`, { method: "POST", headers: { "Content-Type": "application/octet-stream" }, body });
    assert.equal(response.status, 200, await response.text());
  }
  const facts = async () => (await (await fetch(`${server.url}/weight_info`)).json()).data[0];
  const [newer, known] = [await answer(server), await facts()];
  assert.notDeepEqual(newer, expected);
  for (const after_ms of [0, 30, 80, 160, 320, 640]) {
    for (const rank of [0, 1]) {
      const before = byNumber(ranksOf(server));
      process.kill(before[rank], "SIGKILL");
      await eventually("others come", () => {
        const now = ranksOf(server);
        return now.length === 2 && now.every((pid) => !before.includes(pid));
      }, 120);
      const coming = byNumber(ranksOf(server));
      await new Promise((resolve) => setTimeout(resolve, after_ms));  // whenever that may be
      process.kill(coming[1 - rank], "SIGKILL");
      await restarted(server, coming);
      assert.deepEqual(await answer(server), newer, `rank ${rank}, after ${after_ms} ms`);
      assert.deepEqual(await facts(), known);
    }
  }
  const { data: [{ id }] } = await (await fetch(`${server.url}/v1/models`)).json();
  assert.equal((await post(`${server.url}/api/generate`, { model: id, keep_alive: 0 })).status, 200);
  assert.deepEqual(await answer(server), expected, "who unloads it gets the weights of its file");
});

// Networks of their own for two ranks, and a bridge to the server: only as root.
function networks(t) {
  const ip = (...args) => execFileSync("ip", args, { stdio: ["ignore", "pipe", "pipe"] }).toString();
  const id = process.pid % 10000;
  const net = `10.213.${process.pid % 250}`;
  const names = [0, 1].map((i) => `braid${id}n${i}`);
  const bridge = `br${id}`;
  const quietly = (...args) => { try { ip(...args); } catch { /* it is gone already */ } };
  t.after(() => {
    for (const name of names) {
      let pids = "";
      try { pids = ip("netns", "pids", name); } catch { /* it is gone already */ }
      for (const pid of pids.split("\n").filter(Boolean)) try { process.kill(Number(pid), "SIGKILL"); } catch { /* likewise */ }
      quietly("netns", "del", name);
    }
    names.forEach((_, i) => quietly("link", "del", `ve${id}h${i}`));
    quietly("link", "del", bridge);
  });
  ip("link", "add", bridge, "type", "bridge");
  ip("addr", "add", `${net}.1/24`, "dev", bridge);
  ip("link", "set", bridge, "up");
  names.forEach((name, i) => {
    ip("netns", "add", name);
    ip("link", "add", `ve${id}h${i}`, "type", "veth", "peer", "name", "eth0", "netns", name);
    ip("link", "set", `ve${id}h${i}`, "master", bridge, "up");
    ip("-n", name, "addr", "add", `${net}.${i + 2}/24`, "dev", "eth0");
    ip("-n", name, "link", "set", "eth0", "up");
    ip("-n", name, "link", "set", "lo", "up");
  });
  const folder = temporaryFolder(t);
  // What mpirun starts its daemons with: of each address the network that has it.
  const agent = path.join(folder, "agent");
  writeFileSync(agent, `#!/bin/sh\nhost=$1; shift\ncase $host in\n${names.map((name, i) => `${net}.${i + 2}) net=${name};;`).join("\n")}\nesac\nexec ip netns exec $net sh -c "$*"\n`);
  chmodSync(agent, 0o755);
  const hosts = path.join(folder, "hosts");
  writeFileSync(hosts, `${net}.2 slots=1\n${net}.3 slots=1\n`);
  return {
    options: ["--hostfile", hosts, "--ranks-listen", `${net}.1:0`],
    env: { OMPI_MCA_plm_rsh_agent: agent, OMPI_MCA_btl: "tcp,self", OMPI_MCA_btl_tcp_if_include: `${net}.0/24`,
      OMPI_MCA_oob_tcp_if_include: `${net}.0/24`, OMPI_MCA_oob_tcp_keepalive_time: "2", OMPI_MCA_oob_tcp_keepalive_intvl: "1", OMPI_MCA_oob_tcp_keepalive_probes: "2" },
    set: (rank, state) => ip("link", "set", `ve${id}h${rank}`, state),
  };
}

const mayMakeNetworks = () => {
  try {
    execFileSync("ip", ["netns", "add", "braid-probe"], { stdio: "ignore" });
    execFileSync("ip", ["netns", "del", "braid-probe"], { stdio: "ignore" });
    return true;
  } catch { return false; }
};

for (const [phase, begin] of Object.entries(phases)) {
  test(`ranks with networks of their own: their bits, and one that is cut off (${phase})`, { skip: !mayMakeNetworks() && "needs the right to make networks" }, async (t) => {
    const model = longModel(t);
    const expected = await answer(await serve(t, [model, "--kv-memory", "256MiB", "--threads", "1", "--speculate", "off", "--prefix-cache", "off"]));
    const net = networks(t);
    const server = await serve(t, [model, ...modest.with(3, "1"), ...net.options], { env: net.env });
    assert.deepEqual(await answer(server), expected, "two machines, as it were");
    for (const rank of [0, 1]) {
      const running = await begin(server);
      net.set(rank, "down");
      for (const { error } of await Promise.all(running)) assert.match(error.message, /is loaded again: .*rank/, `rank ${rank}`);
      await eventually("it is noticed", async () => (await fetch(`${server.url}/readyz`)).status === 503, 120);
      net.set(rank, "up");
      await eventually("ready again", async () => (await fetch(`${server.url}/readyz`)).status === 200, 300);  // attempts that began while it was cut off end first
      assert.deepEqual(await answer(server), expected, `rank ${rank}`);
    }
  });
}
