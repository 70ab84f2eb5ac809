#!/usr/bin/env python3
"""The same requests with guessed tokens and without, in turns on one server: how many times as fast answers come. With --peer the same of two
llama-servers, one of them with the options that make it guess.

speculation.py --braid BRAID [--draft DRAFT.gguf] [--method auto] [--clients 1,8,32] [--rounds 9] [--kind chat|text|repeat|edit|predict]
               [--peer LLAMA_SERVER --peer-options "--spec-type ngram-simple"] MODEL.gguf
"""
import argparse, http.client, json, os, random, re, shlex, socket, statistics, subprocess, sys, threading, time, urllib.request

SUBJECTS = ["a brave fox and a lost kite", "an owl who could not sleep", "a bear in the snow", "a mouse and a big cheese",
            "a boat on the lake", "a girl and her red hat", "two friends and a tree", "a dog who found a bone"]
STORY = "Once upon a time, a brave fox named Luna lived in the castle. She loved her kite more than anything. "


def start(args):
    command = [args.braid, "serve", "--port", "0", "--kv-memory", args.kv_memory, "--draft-tokens", str(args.tokens)] + args.model
    if args.draft:
        command += ["--draft", args.draft]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    port = None
    for line in server.stdout:
        if found := re.search(r"listening on http://127.0.0.1:(\d+)", line):
            port = int(found[1])
        if line.startswith("ready"):
            threading.Thread(target=lambda: [None for _ in server.stdout], daemon=True).start()
            return server, port
    sys.exit("the server did not start")


def start_peer(args, options):
    """With the same threads; its answers are not braid's, bit for bit, because its products are not."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    threads = args.model[args.model.index("--threads") + 1] if "--threads" in args.model else "1"
    most = max(map(int, args.clients.split(",")))
    command = [args.peer, "-m", args.model[0], "--port", str(port), "-t", threads, "-np", str(most), "-c", str(2048 * most)] + options
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(600):
        time.sleep(0.1)
        try:
            if urllib.request.urlopen(f"http://127.0.0.1:{port}/health").status == 200: return server.pid, port, server
        except OSError: pass
        if server.poll() is not None: break
    sys.exit("the peer did not start")


def body_of_peer(args, index):
    if args.kind == "chat":
        path, body = body_of(args, index, "off")
        del body["speculative"]
        return path, body
    kinds = {"text": lambda: [random.Random(index).randrange(300, 1900) for _ in range(64)], "edit": lambda: args.texts[index % 8]}
    return "/completion", {"prompt": kinds[args.kind](), "n_predict": args.answer, "temperature": 0, "ignore_eos": True}


def body_of(args, index, method):
    if method.startswith("peer"): return body_of_peer(args, index)
    more = {"max_tokens": args.answer, "seed": 100 + index, "temperature": args.temperature, "ignore_eos": True,
            "speculative": {"method": method}}
    if args.kind == "chat":
        return "/v1/chat/completions", {"messages": [{"role": "user", "content": f"Tell me a story about {SUBJECTS[index % 8]}."}], **more}
    if args.kind == "text":  # no two alike
        ids = [random.Random(index).randrange(300, 1900) for _ in range(64)]
        return "/v1/completions", {"prompt": ids, **more}
    if args.kind == "predict":
        ids, said = args.texts[index % 8]
        words = said.split(" ")
        words[12::24] = ["changed"] * len(words[12::24])
        return "/v1/completions", {"prompt": ids, **more, "temperature": 0, "prediction": {"type": "content", "content": " ".join(words)}}
    if args.kind == "edit":
        return "/v1/completions", {"prompt": args.texts[index % 8], **more, "temperature": 0}
    return "/v1/completions", {"prompt": STORY * 4 + SUBJECTS[index % 8], **more, "temperature": 0}


def ask(port, path, body, out):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
    answer = json.loads(connection.getresponse().read())
    if "tokens_predicted" in answer:
        guessed, right = answer["timings"].get("draft_n", 0), answer["timings"].get("draft_n_accepted", 0)
        return out.append((answer["tokens_predicted"], right, guessed - right, [answer["content"]]))
    if "usage" not in answer:
        sys.exit(json.dumps(answer))
    details, timings = answer["usage"].get("completion_tokens_details", {}), answer.get("timings", {})
    right = details.get("accepted_prediction_tokens", timings.get("draft_n_accepted", 0))
    wrong = details.get("rejected_prediction_tokens", timings.get("draft_n", 0) - right)
    out.append((answer["usage"]["completion_tokens"], right, wrong,
                [c.get("text") or c["message"]["content"] for c in answer["choices"]]))


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat") as file: fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def texts_that_repeat(args, port):
    """edit: prompts that hold what the model says to their ends, so that its answers mostly say it again. predict: what it will say."""
    texts = []
    for index in range(8):
        ids = [random.Random(index).randrange(300, 1900) for _ in range(32)]
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
        connection.request("POST", "/v1/completions", json.dumps({"prompt": ids, "max_tokens": args.answer, "temperature": 0, "ignore_eos": True,
                                                                  "return_token_ids": True}), {"Content-Type": "application/json"})
        choice = json.loads(connection.getresponse().read())["choices"][0]
        texts.append((ids, choice["text"]) if args.kind == "predict" else ids + choice["token_ids"] + ids[-16:])
    return texts


def run(args, server, clients, method, first):
    pid, port = server[:2]
    clock = (lambda: cpu_seconds(pid)) if args.cpu else time.perf_counter
    answers, threads = [], []
    begin = clock()
    for i in range(clients):
        threads.append(threading.Thread(target=ask, args=(port, *body_of(args, first + i, method), answers)))
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    seconds = clock() - begin
    return sum(a[0] for a in answers) / seconds, sum(a[1] for a in answers), sum(a[2] for a in answers), sorted(str(a[3]) for a in answers)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--braid", required=True)
    parser.add_argument("--draft", default="")
    parser.add_argument("--method", default="auto")
    parser.add_argument("--clients", default="1,8,32")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--answer", type=int, default=128, help="tokens of an answer")
    parser.add_argument("--tokens", type=int, default=8, help="--draft-tokens")
    parser.add_argument("--temperature", type=float, default=0.0)
    parser.add_argument("--kind", default="chat", choices=["chat", "text", "repeat", "edit", "predict"])
    parser.add_argument("--cpu", action="store_true", help="by the server's CPU time, where other programs run; with --threads 1")
    parser.add_argument("--kv-memory", default="512M")
    parser.add_argument("--peer", default="", help="llama-server, of the kinds chat, text and edit")
    parser.add_argument("--peer-options", default="--spec-type ngram-simple", help="with which it guesses")
    parser.add_argument("model", nargs="*", help="and more options of braid serve, behind --")
    args = parser.parse_args()
    server, port = start(args)
    peers = []
    try:
        if args.kind in ("edit", "predict"): args.texts = texts_that_repeat(args, port)
        own = (server.pid, port)
        for clients in map(int, args.clients.split(",")): compare(args, clients, {"off": own, args.method: own})
        if not args.peer: return
        peers = [start_peer(args, options) for options in ([], shlex.split(args.peer_options))]
        for clients in map(int, args.clients.split(",")): compare(args, clients, {"peer": peers[0], "peer, guessing": peers[1]})
    finally:
        for process in [server] + [peer[2] for peer in peers]:
            process.terminate()
            process.wait()


def compare(args, clients, servers):
    """Two ways, by their names: the first one does not guess."""
    plain, guessing = servers
    for way, server in servers.items():
        run(args, server, clients, way, 0)  # prompts are cached from here on
    ratios, rates, accepted, rejected = [], [], 0, 0
    for round in range(args.rounds):
        pair = {}
        for way in (plain, guessing) if round % 2 == 0 else (guessing, plain):
            pair[way] = run(args, servers[way], clients, way, 0 if args.kind == "chat" else round * clients)
        if pair[plain][3] != pair[guessing][3] and plain == "off":
            sys.exit("answers differ")
        ratios.append(pair[guessing][0] / pair[plain][0])
        rates.append(pair[plain][0])
        accepted += pair[guessing][1]
        rejected += pair[guessing][2]
    share = accepted / max(1, accepted + rejected)
    print(f"{guessing}, {clients:3} clients: {statistics.median(rates):7.1f} tokens/s without, {statistics.median(ratios):.2f} times with "
          f"({min(ratios):.2f} to {max(ratios):.2f}); {share:.0%} of {accepted + rejected} guesses right", flush=True)


main()
