#!/usr/bin/env python3
"""Tokens per second of model_bench and of llama.cpp on the same GGUF files, interleaved; prints a Markdown table of medians.

    perf/compare/models.py --braid build/release/perf/model/model_bench --peer DIR MODEL.gguf ... [--rounds 3] [--threads 2]

DIR holds llama.cpp's llama-bench and llama-batched-bench. Both sides: a prompt of 512 alone; and 1, 8, 32 and 64 sequences with a prompt
of 128 that each generate 64 tokens, f16 keys and values, no HTTP.
"""
import argparse
import json
import os
import statistics
import subprocess

ROWS = [1, 8, 32, 64]


def run(command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout


def braid(options, model):
    figures = json.loads(run([options.braid, model, "--threads", str(options.threads), "--repeat", "1"]))["tokens_per_second"]
    return {"prefill": figures["prefill_512"], **{rows: figures[f"decode_{rows}"] for rows in ROWS}}


def peer(options, model):
    common = ["-m", model, "-t", str(options.threads)]
    bench = json.loads(run([os.path.join(options.peer, "llama-bench"), *common, "-p", "512", "-n", "0", "-r", "1", "-o", "json"]))
    result = {"prefill": bench[0]["avg_ts"]}
    rows = ",".join(map(str, ROWS))
    batched = run([os.path.join(options.peer, "llama-batched-bench"), *common, "-c", str(64 * 192), "-b", "2048", "-ub", "512",
                   "-npp", "128", "-ntg", "64", "-npl", rows, "--output-format", "jsonl"])
    for line in batched.splitlines():
        if line.startswith("{"):
            figures = json.loads(line)
            result[figures["pl"]] = figures["speed_tg"]
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--braid", required=True)
    parser.add_argument("--peer", required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("models", nargs="+")
    options = parser.parse_args()

    print("| model | figure | llama.cpp | braid | ratio |\n|---|---|---|---|---|")
    for model in options.models:
        rounds = [(peer(options, model), braid(options, model)) for _ in range(options.rounds)]
        for figure in ["prefill", *ROWS]:
            theirs = statistics.median(first[figure] for first, _ in rounds)
            ours = statistics.median(second[figure] for _, second in rounds)
            ratio = statistics.median(second[figure] / first[figure] for first, second in rounds)
            name = "prefill of 512" if figure == "prefill" else f"{figure} row{'s' if figure > 1 else ''}"
            print(f"| {os.path.basename(model)} | {name} | {theirs:.1f} | {ours:.1f} | {ratio:.2f} |", flush=True)


if __name__ == "__main__":
    main()
