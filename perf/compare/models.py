#!/usr/bin/env python3
"""Tokens per second of model_bench and of peers' llama-batched-bench on the same GGUF files, interleaved; prints a Markdown table of medians.

    perf/compare/models.py --braid build/release/perf/model/model_bench --peer 'llama.cpp=DIR/llama-batched-bench' \\
      --peer 'ik_llama.cpp=DIR/llama-batched-bench -rtr' --kernels build/release/perf/kernels/bench_kernels MODEL.gguf ...

A peer is its name and the command of its benchmark; braid's may have options, too (--isa avx2). All sides: a prompt of 512 alone, the second
one of a process, since the first one pays for touching memory; and sequences with a prompt of --prompt tokens that each generate tokens, keys
and values of 16 bits (braid's own type, bf16 with AMX and f16 without; the peers' f16), no HTTP. With --kernels each round also reads
memory, about as much as the file has: one row's share of that rate is printed, its bytes being those of the weights that a step reads.
"""
import argparse
import json
import os
import re
import statistics
import subprocess

PREFILL = "prefill of 512"
READ_MIB = [8, 64, 128, 256, 640, 1024]  # sizes of Roofline_read


def run(command, errors=subprocess.DEVNULL, **variables):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=errors, text=True, env={**os.environ, **variables}).stdout


def name_of(rows):
    return f"{rows} row{'s' if rows > 1 else ''}"


def braid(options, model):
    report = run([*options.braid.split(), model, "--threads", str(options.threads), "--repeat", "1", "--prompt", str(options.prompt), "--tokens",
                  str(options.tokens), "--rows", ",".join(map(str, options.rows)) or "0", "--prefill", "0" if options.no_prefill else "512"])
    report = json.loads(report)
    rates = report["tokens_per_second"]
    figures = {} if options.no_prefill else {PREFILL: rates["prefill_512"]}
    figures.update({name_of(rows): rates[f"decode_{rows}"] for rows in options.rows})
    return figures, report["step_bytes"]


def peer(command, options, model):
    """Both peers print a table whose columns are PP, TG, B, N_KV, T_PP, S_PP, T_TG, S_TG, T, S."""
    context = max(1024, max([*options.rows, 1]) * (options.prompt + options.tokens))
    batched = lambda prompt, tokens, rows: re.findall(
        r"^\|\s*\d+ \|\s*\d+ \|\s*(\d+) \|\s*\d+ \|\s*[\d.]+ \|\s*([\d.]+) \|\s*[\d.]+ \|\s*([\d.]+) \|",
        run([*command.split(), "-m", model, "-t", str(options.threads), "-c", str(context), "-b", "2048", "-ub", "512",
             "-npp", str(prompt), "-ntg", str(tokens), "-npl", ",".join(map(str, rows))], errors=subprocess.STDOUT), re.MULTILINE)
    figures = {}
    if not options.no_prefill:
        figures[PREFILL] = float(batched("512,512", 1, [1])[1][1])
    if options.rows:
        figures.update({name_of(int(rows)): float(rate) for rows, _, rate in batched(options.prompt, options.tokens, options.rows)})
    return figures


def read_rate(options, model):
    """Bytes a second of a plain read of the size that is nearest to the file's."""
    size = min(READ_MIB, key=lambda mib: abs(mib - os.path.getsize(model) / 2**20))
    report = run([options.kernels, f"--benchmark_filter=Roofline_read/{size}/", "--benchmark_format=json", "--benchmark_min_time=0.3"],
                 BRAID_THREADS=str(options.threads))
    return json.loads(report)["benchmarks"][0]["GB/s"] * 1e9


def measure(options, model):
    peers = dict(text.split("=", 1) for text in options.peer)
    rounds, reads = [], []
    for _ in range(options.rounds):
        if options.kernels:
            reads.append(read_rate(options, model))
        theirs = {name: peer(command, options, model) for name, command in peers.items()}
        ours, step_bytes = braid(options, model)
        rounds.append({**theirs, "braid": ours})
    for figure in rounds[0]["braid"]:
        rates = {name: statistics.median(one[name][figure] for one in rounds) for name in (*peers, "braid")}
        ratio = statistics.median(one["braid"][figure] / max(one[name][figure] for name in peers) for one in rounds)
        share = ""
        if reads and figure == name_of(1):
            share = f"{statistics.median(one['braid'][figure] * step_bytes / read for one, read in zip(rounds, reads)):.2f} of " \
                    f"{statistics.median(reads) / 1e9:.1f} GB/s"
        print(f"| {os.path.basename(model)}, {figure} | " + " | ".join(f"{rate:.1f}" for rate in rates.values()) +
              f" | {ratio:.2f} | {share} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--braid", required=True)
    parser.add_argument("--peer", action="append", required=True, help="NAME=COMMAND; several times")
    parser.add_argument("--kernels", help="bench_kernels")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rows", type=lambda text: [int(rows) for rows in text.split(",") if rows], default=[1, 8, 32, 64])
    parser.add_argument("--prompt", type=int, default=128, help="of each row")
    parser.add_argument("--tokens", type=int, default=64, help="that each row generates")
    parser.add_argument("--no-prefill", action="store_true")
    parser.add_argument("models", nargs="+")
    options = parser.parse_args()
    names = [text.split("=", 1)[0] for text in options.peer]
    print(f"| figure | {' | '.join(names)} | braid | against the better | share of the read |\n|{'---|' * (len(names) + 4)}", flush=True)
    for model in options.models:
        measure(options, model)


if __name__ == "__main__":
    main()
