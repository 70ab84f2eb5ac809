#!/usr/bin/env python3
"""What the prefix cache costs requests that have nothing in common: the same load on `braid serve` with and without it, in turns.

    perf/compare/cache_cost.py --braid build/release/braid [MODEL.gguf] [--rounds 40]

One compute thread, so that processor time is work and not waiting. The pool is small, so that every request evicts blocks.
"""
import argparse
import os
import statistics
import tempfile

from processes import Server, free_port, load


def processor_seconds(server):
    tasks = f"/proc/{server.process.pid}/task"
    nanoseconds = 0
    for task in os.listdir(tasks):
        with open(f"{tasks}/{task}/schedstat") as file:
            nanoseconds += int(file.read().split()[0])
    return nanoseconds / 1e9


def measure(options, server, seed):
    before = processor_seconds(server)
    figures = load(options.braid, server, ["--num-prompts", options.requests, "--max-concurrency", 8, "--input-len", options.words,
                                           "--output-len", options.tokens, "--ignore-eos", "--seed", seed])
    if figures["failed"]:
        raise SystemExit(f"{server.name}: {figures['failed']} requests failed")
    tokens = figures["total_input_tokens"] + figures["completed"] * options.tokens
    return {"tok/s": tokens / figures["duration"], "µs of processor time a token": (processor_seconds(server) - before) * 1e6 / tokens}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--braid", required=True)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--requests", type=int, default=12, help="of one round, to each")
    parser.add_argument("--words", type=int, default=100)
    parser.add_argument("--tokens", type=int, default=16)
    parser.add_argument("model", nargs="?", default="braid-demo")
    options = parser.parse_args()
    rounds = []
    with tempfile.TemporaryDirectory() as folder:
        def start(state):
            port = free_port()
            return Server(state, [options.braid, "serve", options.model, "--port", str(port), "--threads", "1", "--kv-memory", "64MiB",
                                  "--prefix-cache", state, "--log-level", "error"], port, os.path.join(folder, state), ready="/readyz")
        with start("on") as on, start("off") as off:
            for seed in range(options.rounds + 1):  # the first one warms up
                pair = [on, off] if seed % 2 else [off, on]
                rounds.append({server.name: measure(options, server, seed) for server in pair})
    for figure in rounds[0]["on"]:
        values = {state: [one[state][figure] for one in rounds[1:]] for state in ("on", "off")}
        ratios = [a / b for a, b in zip(values["on"], values["off"])]
        low, middle, high = statistics.quantiles(ratios)
        print(f"{figure}: on {statistics.median(values['on']):.1f}, off {statistics.median(values['off']):.1f}, "
              f"ratio {middle:.4f} (quartiles {low:.4f}, {high:.4f})")


if __name__ == "__main__":
    main()
