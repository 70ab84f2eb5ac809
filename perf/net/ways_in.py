#!/usr/bin/env python3
"""What --metrics and TLS cost `braid serve` with the embedded model: the loop's time and the memory of streams, beside those without.

    perf/net/ways_in.py --braid build/release/braid

Each round starts a server of each kind in turn. So many streams of few and then of many tokens run at once; what both cost the loop's
thread gives its time for a token and for a request with its connection. The client is this process, the same for all.
"""
import argparse
import asyncio
import os
import re
import ssl
import statistics
import subprocess
import tempfile

from many_streams import status

FEW, MANY = 4, 32
BATCH = 256  # sequences that run at once


def loop_time(pid):
    """Nanoseconds that the server's first thread, which is its loop, has run."""
    with open(f"/proc/{pid}/task/{pid}/schedstat") as file:
        return int(file.read().split()[0])


async def stream(port, tls, tokens, index):
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls)
    body = f'{{"prompt":"{index} foxes","max_tokens":{tokens},"ignore_eos":true,"stream":true}}'
    head = f"POST /v1/completions HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    writer.write((head + body).encode())
    answer = await reader.read(-1)
    writer.close()
    assert b'"finish_reason":"length"' in answer and b"[DONE]" in answer, answer[-200:]


async def streams(port, tls, tokens, count):
    await asyncio.gather(*(stream(port, tls, tokens, i) for i in range(count)))


def measure(braid, arguments, tls, count):
    """Microseconds of the loop for a token and for a request; KiB of a stream."""
    command = [braid, "serve", "--port", "0", "--log-level", "error", "--kv-memory", "128MiB", "--prefix-cache", "off", *arguments]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        for line in server.stdout:
            if found := re.search(r"listening on \S+:(\d+)$", line.strip()):
                port = int(found.group(1))
            if line.startswith("ready"):
                break
        asyncio.run(streams(port, tls, FEW, BATCH))  # what a full batch takes, and buffers that stay
        idle, times = status(server.pid, "VmHWM"), [loop_time(server.pid)]
        for tokens in (FEW, MANY):
            asyncio.run(streams(port, tls, tokens, count))
            times.append(loop_time(server.pid))
        memory = (status(server.pid, "VmHWM") - idle) / 1024 / (count - BATCH)
    finally:
        server.terminate()
        server.wait()
    few, many = ((after - before) / 1e3 / count for before, after in zip(times, times[1:]))
    token = (many - few) / (MANY - FEW)
    return token, few - FEW * token, memory


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--braid", required=True)
    parser.add_argument("--streams", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        key, certificate = os.path.join(folder, "key.pem"), os.path.join(folder, "cert.pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=localhost",
                        "-keyout", key, "-out", certificate], check=True, stderr=subprocess.DEVNULL)
        trusting = ssl.create_default_context(cafile=certificate)
        trusting.check_hostname = False
        kinds = {"plain": ([], None), "--metrics off": (["--metrics", "off"], None), "TLS": (["--tls-cert", certificate, "--tls-key", key], trusting)}
        rounds = {name: [] for name in kinds}
        for _ in range(options.rounds):
            for name, (arguments, tls) in kinds.items():
                rounds[name].append(measure(options.braid, arguments, tls, options.streams))
    print(f"| {options.streams} streams | loop for a token, us | for a request, us | memory of a stream, KiB |\n|---|---|---|---|")
    for name, figures in rounds.items():
        print(f"| {name} | " + " | ".join(f"{statistics.median(column):.1f}" for column in zip(*figures)) + " |")


if __name__ == "__main__":
    main()
