// What processes that are not this test's do beside it.
import { readFileSync, readdirSync } from "node:fs";

// Ticks of each process: what it took, its ended children included, and who started it.
function processes() {
  const found = new Map();
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name)).map(Number)) {
    try {
      const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1).split(" ");
      found.set(pid, { parent: Number(fields[1]), ticks: fields.slice(11, 15).reduce((sum, each) => sum + Number(each), 0) });
    } catch { /* it has ended meanwhile */ }
  }
  return found;
}

function own_ticks() {
  const all = processes();
  const is_own = (pid) => pid > 1 && (pid === process.pid || is_own(all.get(pid)?.parent ?? 0));
  return [...all].reduce((sum, [pid, { ticks }]) => sum + (is_own(pid) ? ticks : 0), 0);
}

// Ticks of all processors: those that somebody had, those of everything (user, nice, system, idle, iowait, irq, softirq, steal).
function machine() {
  const ticks = readFileSync("/proc/stat", "utf8").match(/^cpu +(.*)$/m)[1].split(" ").slice(0, 8).map(Number);
  const all = ticks.reduce((sum, each) => sum + each);
  return { used: all - ticks[3] - ticks[4], all };
}

// Begins to count; the function that comes back says which part of the processors other processes have had since.
export function share_of_others() {
  const [machine_before, own_before] = [machine(), own_ticks()];
  return () => {
    const [now, own] = [machine(), own_ticks()];
    return Math.max(0, now.used - machine_before.used - (own - own_before)) / (now.all - machine_before.all || 1);
  };
}
