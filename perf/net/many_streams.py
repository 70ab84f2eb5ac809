#!/usr/bin/env python3
"""10,000 streams at once against `braid serve` with the embedded model, on this machine: right answers, memory, latencies, the loop's cost.

    perf/net/many_streams.py --braid build/release/braid

The load generator (`braid bench serve`) is a process of its own. A tenth more requests than streams are sent, and an ended one makes room
for the next, so that the full number is open at a moment when it can be read from /metrics. There are 16 different prompts, each asked
alone first: an answer with another text counts as failed. The prefix cache is off, because it would spare the prefill of all but 16.
Exits with the number of bars missed.
"""
import argparse
import json
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "compare"))
from processes import Server, free_port

MIB = 1 << 20


def get(port, path):
    """A whole answer over a connection of its own, and how long it took in milliseconds."""
    began = time.perf_counter()
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".encode())
        text = b""
        while piece := connection.recv(1 << 16):
            text += piece
    return text.decode(), (time.perf_counter() - began) * 1e3


def gauge(port, name):
    return float(re.search(rf"^{name} (\S+)", get(port, "/metrics")[0], re.M).group(1))


def status(pid, key):
    with open(f"/proc/{pid}/status") as file:
        return int(re.search(rf"{key}:\s+(\d+) kB", file.read()).group(1)) * 1024


def loop_seconds(pid):
    """User and system time of the server's first thread, which is its loop."""
    with open(f"/proc/{pid}/task/{pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return [int(ticks) / os.sysconf("SC_CLK_TCK") for ticks in fields[11:13]]


def watch(server, bench, streams):
    """Until the load generator ends: the most open streams seen, and the latencies of /health."""
    most, health = 0, []
    while bench.poll() is None:
        health.append(get(server.port, "/health")[1])
        if most < streams:
            most = max(most, int(gauge(server.port, "braid_open_streams")))
        time.sleep(0.05)  # the questions cost the server's loop time, too
    return most, health


def percentile(sample, percent):
    return statistics.quantiles(sample, n=100, method="inclusive")[percent - 1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--braid", required=True)
    parser.add_argument("--streams", type=int, default=10_000)
    parser.add_argument("--words", type=int, default=36, help="of a prompt: about 40 tokens")
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--serve-arguments", default="--kv-memory 256MiB --prefix-cache off", help="options of the server, as one string")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        log, report = os.path.join(folder, "braid.log"), os.path.join(folder, "report.json")
        port = free_port()
        command = [options.braid, "serve", "--port", str(port), "--log-level", "error", *options.serve_arguments.split()]
        with Server("braid", command, port, log, ready="/readyz") as server:
            pid = server.process.pid
            sizes = re.search(r"weights ([\d.]+) MiB, KV pool ([\d.]+) MiB", open(log).read())
            idle, before = status(pid, "VmRSS"), loop_seconds(pid)
            bench = subprocess.Popen([options.braid, "bench", "serve", "--base-url", server.url, "--num-prompts", str(options.streams * 11 // 10),
                                      "--max-concurrency", str(options.streams), "--input-len", str(options.words), "--output-len",
                                      str(options.tokens), "--ignore-eos", "--distinct", "16", "--verify", "--quiet", "--json", report])
            most, health = watch(server, bench, options.streams)
            user, system = (after - b for after, b in zip(loop_seconds(pid), before))
            peak = status(pid, "VmHWM")
        with open(report) as file:
            figures = json.load(file)
    tokens = figures["total_output_tokens"] or 1
    beyond = peak / MIB - float(sizes.group(1)) - float(sizes.group(2))
    print(f"{figures['completed']} answers of {tokens / max(1, figures['completed']):.0f} tokens to prompts of "
          f"{figures['total_input_tokens'] / max(1, figures['completed']):.0f} in {figures['duration']:.1f} s: "
          f"{figures['output_throughput']:.0f} tok/s; failures: {figures['failures'] or 'none'}")
    print(f"time to first token p50 {figures['p50_ttft_ms'] / 1e3:.1f} s, p99 {figures['p99_ttft_ms'] / 1e3:.1f} s; "
          f"inter-token p50 {figures['p50_itl_ms']:.0f} ms")
    print(f"load of the machine at the end: {os.getloadavg()[0]:.1f}\n\n| bar | measured | at most |\n|---|---|---|")
    missed = 0

    def judge(what, value, bar, at_least=False):
        nonlocal missed
        is_met = value >= bar if at_least else value <= bar
        missed += not is_met
        print(f"| {what} | {value:.2f} | {'at least ' if at_least else ''}{bar:g}{'' if is_met else ', missed'} |")

    judge("streams open at one moment", most, options.streams, at_least=True)
    judge("requests that failed or got another text", figures["failed"], 0)
    judge("/health p99, ms", percentile(health, 99), 50)
    judge("inter-token p99, ms", figures["p99_itl_ms"], 2000)
    judge("peak resident memory beyond weights and KV, MiB", beyond, 160)
    judge("resident memory for each stream, KiB", (peak - idle) / 1024 / options.streams, 16)
    judge("loop, user time for each token, requests included, us", user / tokens * 1e6, 4)
    judge("loop, user and system time, us", (user + system) / tokens * 1e6, 10)
    return missed


if __name__ == "__main__":
    sys.exit(main())
