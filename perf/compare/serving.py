#!/usr/bin/env python3
"""braid and llama-server under the same load, on the same model file and machine, in turns; prints Markdown tables and which bars are met.

    perf/compare/serving.py --braid build/release/braid --bench build/release/perf/model/model_bench --peer llama-server MODEL.gguf

The client is `braid bench serve` in a process of its own: each client sends its next request when the last one is answered, prompts are
all different, and arrivals, prompts and lengths are the same for both servers. Tokens are counted by `usage`. Of several rounds, which take
turns in who goes first, medians of each figure and of the ratios of a round are printed. MODEL.gguf needs a tokenizer:
make_random_model smollm2-135m q8_0 MODEL.gguf --tokenizer ggml-vocab-starcoder.gguf
"""
import argparse
import collections
import json
import os
import statistics
import subprocess
import sys
import tempfile

import joining_prompt
from processes import Server, free_port, load

# Words become about 1.8 of starcoder's tokens each.
Row = collections.namedtuple("Row", "clients requests_each words tokens rounds bars")
# A bar: name, figure, how braid must stand to the peer.
FASTER = lambda times: ("tok/s", lambda ours, theirs: ours["rate"] / theirs["rate"], times, f"tok/s at least {times} times")
SOONER = lambda times: ("ttft", lambda ours, theirs: theirs["ttft_p99"] / ours["ttft_p99"], times, f"TTFT p99 at most 1/{times}")
SMOOTHER = lambda times: ("itl", lambda ours, theirs: theirs["itl_p99"] / ours["itl_p99"], times, f"inter-token p99 at most 1/{times}")
ROWS = {
    "1": Row(1, 20, 57, 64, 3, [FASTER(1.6)]),
    "8": Row(8, 20, 57, 64, 2, [FASTER(5), SOONER(5)]),
    "32": Row(32, 20, 57, 64, 1, [FASTER(10), SOONER(10), SMOOTHER(20)]),
    "128": Row(128, 5, 57, 64, 1, [FASTER(10)]),
    "1000": Row(1000, 1, 23, 8, 1, [FASTER(8)]),
}
FIGURES = {"rate": "output_throughput", "ttft_p50": "p50_ttft_ms", "ttft_p99": "p99_ttft_ms", "itl_p50": "p50_itl_ms",
           "itl_p99": "p99_itl_ms", "tpot": "mean_tpot_ms", "failed": "failed", "input": "total_input_tokens", "completed": "completed"}

met = []


def judge(what, value, bar, at_least=True):
    met.append((what, value, bar, value >= bar if at_least else value <= bar))


def start_braid(options, log, *extra):
    port = free_port()
    return Server("braid", [options.braid, "serve", options.model, "--port", str(port), "--kv-memory", "2GiB", "--log-level", "error",
                            *extra], port, log, ready="/readyz")


def start_peer(options, log, slots, context, *extra):
    port = free_port()
    return Server("llama-server", [options.peer, "-m", options.model, "--port", str(port), "--parallel", str(slots), "-c", str(context),
                                   "-t", str(options.threads), *extra, *options.peer_arguments.split()], port, log)


def compare(options, name, ours, theirs):
    row = ROWS[name]
    rounds = []
    for number in range(options.rounds or row.rounds):
        arguments = ["--num-prompts", row.clients * row.requests_each, "--max-concurrency", row.clients, "--input-len", row.words,
                     "--output-len", row.tokens, "--ignore-eos", "--seed", 100 * row.clients % 997 + number, "--timeout", "600s"]
        servers = [ours, theirs] if number % 2 == 0 else [theirs, ours]
        figures = {server.name: load(options.braid, server, arguments) for server in servers}
        rounds.append([{key: figures[server.name][figure] for key, figure in FIGURES.items()} for server in (ours, theirs)])
    requests = row.clients * row.requests_each
    prompt = rounds[0][0]["input"] / max(1, rounds[0][0]["completed"])
    print(f"\n{name} client{'s' if row.clients > 1 else ''}: {requests} requests, {len(rounds)} round{'s' if len(rounds) > 1 else ''}, "
          f"{prompt:.0f} prompt tokens, {row.tokens} out\n\n"
          "| server | tok/s | TTFT p50 / p99 ms | inter-token p50 / p99 ms | failed |\n|---|---|---|---|---|")
    for side, server in enumerate((ours, theirs)):
        median = {key: statistics.median(pair[side][key] for pair in rounds) for key in FIGURES}
        print(f"| {server.name} | {median['rate']:.1f} | {median['ttft_p50']:.0f} / {median['ttft_p99']:.0f} | "
              f"{median['itl_p50']:.1f} / {median['itl_p99']:.1f} | {median['failed']:.0f} |", flush=True)
    for _, ratio, times, sentence in row.bars:
        judge(f"{name}: {sentence}", statistics.median(ratio(*pair) for pair in rounds), times)
    judge(f"{name}: requests of braid that failed", max(pair[0]["failed"] for pair in rounds), 0, at_least=False)
    return rounds


def bare_loop(options, rounds):
    """The step executor alone, without scheduler and HTTP, beside what one client got."""
    report = subprocess.run([options.bench, options.model, "--threads", str(options.threads), "--rows", "1", "--prefill", "100", "--prompt",
                             "100", "--tokens", "64", "--repeat", "5"], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    bare = json.loads(report.stdout)["tokens_per_second"]["decode_1"]
    served = statistics.median(1e3 / pair[0]["tpot"] for pair in rounds)
    print(f"\nDecoding alone: {bare:.1f} tok/s by the bare step executor, {served:.1f} by one client.")
    judge("1: tokens after the first, share of the bare step executor's rate", served / bare, 0.95)


def join(options, folder):
    """An 8,000-token prompt joins 32 decoding streams; 33 slots, so that it can."""
    print("\nA prompt of 8,000 tokens joins 32 decoding streams\n\n"
          "| server | worst gap ms | step before, after ms | prompt computed in s |\n|---|---|---|---|")
    results = {}
    for start in (lambda log: start_braid(options, log), lambda log: start_peer(options, log, 33, 65536, "--kv-unified")):
        with start(os.path.join(folder, "join.log")) as server:
            result = joining_prompt.measure(server, 32, 1500, 8000)
        results[server.name] = result
        print(f"| {server.name} | {result['worst']:.0f} | {result['step']:.1f}, {result['step_after']:.1f} | {result['prefill_s']:.1f} |", flush=True)
    ours = results["braid"]
    # Of the streams' contexts as they are at the end: these grow meanwhile, and with them a step.
    judge("join: worst gap in ms, at most one step and 50 ms", ours["worst"], ours["step_after"] + 50, at_least=False)


def ten_thousand(options):
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "net", "many_streams.py")
    code = subprocess.run([sys.executable, script, "--braid", options.braid]).returncode
    judge("10000: bars that many_streams.py found missed or failed", code, 0, at_least=False)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--braid", required=True)
    parser.add_argument("--bench", help="model_bench, for the bare step executor's rate")
    parser.add_argument("--peer", help="llama-server")
    parser.add_argument("--rows", default="1,8,32,128,1000,join,10000")
    parser.add_argument("--rounds", type=int, help="of each row, instead of 3, 2 and 1")
    parser.add_argument("--threads", type=int, default=2, help="of the peer and of model_bench")
    parser.add_argument("--peer-arguments", default="", help="more options of llama-server, as one string")
    parser.add_argument("model", nargs="?")
    options = parser.parse_args()
    rows = options.rows.split(",")
    compared = [row for row in rows if row in ROWS]
    if (compared or "join" in rows) and not (options.model and options.peer):
        parser.error("these rows need a model and --peer")
    print(f"Load of the machine at the start: {os.getloadavg()[0]:.1f}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        if compared:
            with start_braid(options, os.path.join(folder, "braid.log")) as ours, \
                 start_peer(options, os.path.join(folder, "peer.log"), 32, 32 * 512) as theirs:
                for name in compared:
                    rounds = compare(options, name, ours, theirs)
                    if name == "1" and options.bench:
                        bare_loop(options, rounds)
        if "join" in rows:
            join(options, folder)
    if "10000" in rows:
        ten_thousand(options)
    print("\n| bar | measured | wanted | |\n|---|---|---|---|")
    for what, value, bar, is_met in met:
        print(f"| {what} | {value:.2f} | {bar:.2f} | {'met' if is_met else 'missed'} |")
    print(f"\nLoad of the machine at the end: {os.getloadavg()[0]:.1f}")
    return sum(not is_met for *_, is_met in met)


if __name__ == "__main__":
    sys.exit(main())
