// The ranks of a server, as processes.
import { readFileSync, readdirSync } from "node:fs";
import { eventually } from "./client.mjs";

const stat = (pid) => readFileSync(`/proc/${pid}/stat`, "utf8");
const parent = (pid) => Number(/^\d+ \(.*\) . (\d+)/s.exec(stat(pid))[1]);

// Those that a server has started, however many processes lie between.
export function ranksOf(server) {
  const isOfServer = (pid) => pid > 1 && (pid === server.child.pid || isOfServer(parent(pid)));
  return readdirSync("/proc").filter((name) => /^\d+$/.test(name)).map(Number).filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/comm`, "utf8").trim() === "braid-rank" && isOfServer(pid);
    } catch { return false; }  // it has ended meanwhile
  });
}

// By number: what rank i of a group has in its environment.
export const byNumber = (pids) => [...pids].sort((a, b) => numberOf(a) - numberOf(b));
const numberOf = (pid) => Number(/OMPI_COMM_WORLD_RANK=(\d+)/.exec(readFileSync(`/proc/${pid}/environ`, "latin1"))[1]);

export function isThere(pid) {
  try {
    return stat(pid).split(") ")[1][0] !== "Z";
  } catch { return false; }
}

export function processorTime(pid) {
  const fields = stat(pid).split(") ")[1].split(" ");
  return Number(fields[11]) + Number(fields[12]);
}

// Once none of these is left, and others serve.
export async function restarted(server, before) {
  await eventually("there are new ranks", () => {
    const now = ranksOf(server);
    return now.length === before.length && now.every((pid) => !before.includes(pid));
  }, 240);
  await eventually("ready again", async () => (await fetch(`${server.url}/readyz`)).status === 200, 240);
}
