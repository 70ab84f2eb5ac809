"""Servers and the load generator as processes of their own, for the comparisons beside this file."""
import http.client
import json
import os
import subprocess
import tempfile
import time


class Server:
    """A server that this script started on a loopback port; ends with the `with` block."""

    def __init__(self, name, command, port, log, ready="/health"):
        self.name, self.port = name, port
        self.url = f"http://127.0.0.1:{port}"
        self.log = open(log, "wb")
        self.process = subprocess.Popen(command, stdout=self.log, stderr=subprocess.STDOUT)
        self.wait_until(ready)

    def wait_until(self, path, seconds=120):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise SystemExit(f"{self.name} ended while starting; see {self.log.name}")
            try:
                connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
                connection.request("GET", path)
                if connection.getresponse().status == 200:
                    return
            except OSError:
                pass
            time.sleep(0.1)
        raise SystemExit(f"{self.name} is not ready after {seconds} s; see {self.log.name}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()


def load(braid, server, arguments):
    """`braid bench serve` against `server`: its figures, "failed" among them."""
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "report.json")
        command = [braid, "bench", "serve", "--base-url", server.url, "--quiet", "--json", report, *map(str, arguments)]
        ran = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if not os.path.exists(report):
            raise SystemExit(f"the load generator failed: {ran.stderr}")
        with open(report) as file:
            return json.load(file)


def free_port():
    import socket
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
