"""What decoding streams feel when a long prompt joins them: the gaps between their tokens, seen by one client of both servers."""
import http.client
import json
import random as source
import selectors
import socket
import statistics
import time


class Stream:
    """One completion over a socket of its own. Notes when pieces with text arrive. Every token of its answer is `word`: random weights
    would also give tokens that end within a character, for which no server sends a piece, and two steps would look like one gap."""

    def __init__(self, server, prompt, tokens, word):
        body = json.dumps({"model": "default", "prompt": prompt, "max_tokens": tokens, "temperature": 0, "ignore_eos": True,
                           "logit_bias": {str(word): 100}, "stream": True}).encode()
        self.socket = socket.create_connection(("127.0.0.1", server.port))
        self.socket.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nConnection: close\r\n"
                            b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        self.socket.setblocking(False)
        self.times = []
        self.tail = b""
        self.done = False

    def read(self):
        received = self.socket.recv(1 << 16)
        text = self.tail + received
        if b'"text":"' in received:
            self.times.append(time.perf_counter())
        if b"data: [DONE]" in text or not received:
            self.done = True
            self.socket.close()
        self.tail = text[-200:]

    def gaps(self, begin, end):
        """Milliseconds between pieces of which the later one came within [begin, end]."""
        return [(b - a) * 1e3 for a, b in zip(self.times, self.times[1:]) if begin <= b <= end]


def word_token(server):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    connection.request("POST", "/tokenize", json.dumps({"content": "word"}), {"Content-Type": "application/json"})
    return json.load(connection.getresponse())["tokens"][-1]


def measure(server, streams, tokens, joining_tokens):
    """Worst gap in milliseconds while the prompt is computed, and the median gap before it came and after it: steps without it, with the
    streams' contexts as they were then."""
    selector = selectors.DefaultSelector()
    random = source.Random(7)
    prompt = lambda count: [random.randrange(1000, 20000) for _ in range(count)]  # token ids, as both servers take them
    word = word_token(server)

    def start(*request):
        stream = Stream(server, *request, word)
        selector.register(stream.socket, selectors.EVENT_READ, stream)
        return stream

    def read():
        for key, _ in selector.select():
            stream = key.data
            stream.read()
            if stream.done:
                selector.unregister(key.fileobj)
        if any(stream.done for stream in decoding):
            raise SystemExit(f"{server.name}: a stream ended too early; give them more tokens")

    decoding = [start(prompt(40), tokens) for _ in range(streams)]
    # Before it joins, each stream has had a few tokens; it has come when its own first token is there.
    while not all(len(stream.times) > 8 for stream in decoding):
        read()
    settled = max(stream.times[2] for stream in decoding)
    began = time.perf_counter()
    joined = start(prompt(joining_tokens), 1)
    while not joined.times and not joined.done:
        read()
    if not joined.times:
        raise SystemExit(f"{server.name} did not answer the long prompt: {joined.tail!r}")
    ended = time.perf_counter()
    # A stream that got nothing since: its gap is as long as it has waited.
    waiting = [(ended - stream.times[-1]) * 1e3 for stream in decoding]
    counts = [len(stream.times) for stream in decoding]
    while not all(len(stream.times) > count + 8 for stream, count in zip(decoding, counts)):
        read()
    for stream in decoding:
        stream.socket.close()
    gaps = lambda begin, end: [gap for stream in decoding for gap in stream.gaps(begin, end)]
    after = [gap for stream, count in zip(decoding, counts) for gap in stream.gaps(stream.times[count + 1], time.perf_counter())]
    return {"worst": max(gaps(began, ended) + waiting), "step": statistics.median(gaps(settled, began)), "step_after": statistics.median(after),
            "prefill_s": ended - began}
