#!/usr/bin/env python3
"""What --target-itl-ms gives beside the best fixed settings, under a step load; prints a Markdown table.

    perf/sched/latency_target.py --braid build/release/braid [--target 20] [MODEL.gguf]

A few clients are served when many more come at once. A setting counts where the 95th percentile of the time between two tokens is at most
1.2 times the target; its goodput is its tokens a second. The client is `braid bench serve` in a process of its own.
"""
import argparse
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "compare"))
from processes import Server, free_port, load  # noqa: E402


def measure(options, name, *setting):
    port = free_port()
    command = [options.braid, "serve", *options.model, "--port", str(port), "--log-level", "error", *map(str, setting)]
    with tempfile.NamedTemporaryFile() as log, Server("braid", command, port, log.name, ready="/readyz") as server:
        common = ["--input-len", 30, "--output-len", options.tokens, "--ignore-eos", "--timeout", "600s"]
        load(options.braid, server, ["--num-prompts", 8, "--max-concurrency", 4, "--seed", 1, *common])
        figures = load(options.braid, server, ["--num-prompts", options.clients, "--max-concurrency", options.clients, "--seed", 2, *common])
    p95, rate = figures["p95_itl_ms"], figures["output_throughput"]
    print(f"| {name} | {p95:.1f} | {rate:.0f} | {figures['failed']} |", flush=True)
    return p95, rate


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--braid", required=True)
    parser.add_argument("--target", type=int, default=20, help="milliseconds")
    parser.add_argument("--clients", type=int, default=128)
    parser.add_argument("--tokens", type=int, default=48)
    parser.add_argument("model", nargs="*", help="a GGUF file; the embedded model if not given")
    options = parser.parse_args()
    print("| setting | inter-token p95 ms | tok/s | failed |\n|---|---|---|---|")
    fixed = [measure(options, f"--max-batch {rows} --prefill-slice-ms {slice_ms}", "--max-batch", rows, "--prefill-slice-ms", slice_ms)
             for rows in (4, 8, 16, 32, 64, 128) for slice_ms in (2, 10)]
    p95, rate = measure(options, f"--target-itl-ms {options.target}", "--target-itl-ms", options.target)
    best = max((rate for p95, rate in fixed if p95 <= 1.2 * options.target), default=0.0)
    print(f"\np95 is {p95 / options.target:.2f} times the target; goodput is {rate / best:.2f} times the best fixed one's"
          if best else "\nno fixed setting keeps the target")
    return 0 if best and p95 <= 1.2 * options.target and rate >= 0.95 * best else 1


if __name__ == "__main__":
    sys.exit(main())
