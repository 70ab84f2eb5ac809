#!/usr/bin/env python3
"""Time of one token after a cached prefix of 1,000 tokens, beside the same suffix alone and the same length uncached."""
import argparse
import http.client
import json
import random
import statistics
import time

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--port", type=int, default=8000)
parser.add_argument("--model", default="braid-demo")
parser.add_argument("--suffix", type=int, nargs="+", default=[8, 16, 23])
parser.add_argument("--rounds", type=int, default=14)
options = parser.parse_args()
connection = http.client.HTTPConnection("127.0.0.1", options.port)
source = random.Random(5)


def tokens(count):
    return [source.randrange(300, 1900) for _ in range(count)]


def milliseconds(prompt):
    body = json.dumps({"model": options.model, "prompt": prompt, "max_tokens": 1, "temperature": 0})
    begin = time.perf_counter()
    connection.request("POST", "/v1/completions", body, {"Content-Type": "application/json"})
    response = connection.getresponse()
    text = response.read()
    if response.status != 200:
        raise SystemExit(text.decode())
    return (time.perf_counter() - begin) * 1e3


shared = tokens(1000)
milliseconds(shared + tokens(4))
for suffix in options.suffix:
    times = {"warm": [], "suffix alone": [], "cold": []}
    for _ in range(options.rounds):
        round_of = [("warm", shared + tokens(suffix)), ("suffix alone", tokens(suffix)), ("cold", tokens(1000 + suffix))]
        source.shuffle(round_of)
        for name, prompt in round_of:
            times[name].append(milliseconds(prompt))
    figures = ", ".join(f"{name} {statistics.median(values):.1f} (least {min(values):.1f})" for name, values in times.items())
    print(f"{suffix} tokens after 1,000: {figures} ms", flush=True)
