#!/usr/bin/env python3
"""What --target-itl-ms gives beside the best fixed settings, under a step load; prints a Markdown table.

    perf/sched/latency_target.py --braid build/release/braid [--target 50] [--rounds 3] [MODEL.gguf]

Four clients are served when many more come at once. A setting counts where the 95th percentile of the time between two tokens is at most
1.2 times the target, for the four as for the many; its goodput is its tokens a second. The best fixed one is looked for among combinations
of rows and slices, then measured in turn with the target; medians of these rounds count. `braid bench serve` is the client, in a process
of its own.
"""
import argparse
import concurrent.futures
import os
import statistics
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "compare"))
from processes import Server, free_port, load  # noqa: E402

SLACK = 1.2   # times the target
SHARE = 0.95  # of the best fixed setting's goodput
FEW = 4


def step_load(options, server):
    """95th percentile of the milliseconds between two tokens, the worse of the few clients' and the many's, and tokens a second."""
    def ask(prompts, clients, tokens, seed):
        figures = load(options.braid, server, ["--num-prompts", prompts, "--max-concurrency", clients, "--input-len", 30, "--output-len", tokens,
                                               "--seed", seed, "--ignore-eos", "--timeout", "600s"])
        if figures["failed"]:
            raise SystemExit(f"{figures['failed']} requests failed; see {server.log.name}")
        return figures

    ask(2 * FEW, FEW, options.tokens, 1)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        began = time.monotonic()
        few = pool.submit(ask, FEW, FEW, 4 * options.tokens, 2)
        time.sleep(0.5)
        many = ask(options.clients, options.clients, options.tokens, 3)
        loads = [few.result(), many]
        seconds = time.monotonic() - began
    return max(figures["p95_itl_ms"] for figures in loads), sum(figures["total_output_tokens"] for figures in loads) / seconds


def measure(options, setting):
    port = free_port()
    command = [options.braid, "serve", *options.model, "--port", str(port), "--kv-memory", "1GiB", "--log-level", "error", *setting.split()]
    with tempfile.NamedTemporaryFile() as log, Server("braid", command, port, log.name, ready="/readyz") as server:
        p95, rate = step_load(options, server)
    print(f"| {setting} | {p95:.1f} | {rate:.0f} |", flush=True)
    return p95, rate


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--braid", required=True)
    parser.add_argument("--target", type=int, default=50, help="milliseconds")
    parser.add_argument("--clients", type=int, default=128)
    parser.add_argument("--tokens", type=int, default=48)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rows", type=int, nargs="+", default=[8, 32, 128], help="of the fixed settings")
    parser.add_argument("model", nargs="*", help="a GGUF file; the embedded model if not given")
    options = parser.parse_args()
    most = SLACK * options.target
    print("| setting | inter-token p95 ms | tok/s |\n|---|---|---|")
    slices = sorted({max(1, options.target // part) for part in (8, 4, 2)})
    fixed = {setting: measure(options, setting)
             for setting in (f"--max-batch {rows} --prefill-slice-ms {slice_ms}" for rows in options.rows for slice_ms in slices)}
    good = {setting: rate for setting, (p95, rate) in fixed.items() if p95 <= most}
    if not good:
        raise SystemExit("no fixed setting keeps the target")
    best = max(good, key=good.get)
    rounds = [(measure(options, f"--target-itl-ms {options.target}"), measure(options, best)) for _ in range(options.rounds)]
    p95 = statistics.median(controlled[0] for controlled, _ in rounds) / options.target
    share = statistics.median(controlled[1] / other[1] for controlled, other in rounds)
    print(f"\np95 is {p95:.2f} times the target; goodput is {share:.2f} times that of {best}")
    return 0 if p95 <= SLACK and share >= SHARE else 1


if __name__ == "__main__":
    sys.exit(main())
