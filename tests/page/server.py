"""A running explorer for tests, and how to speak with it without a browser."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

import psutil
from websockets.sync.client import connect

KEPT = tempfile.mkdtemp(prefix="onegrad-page-")  # not the state of who runs the tests
SPEC = {
    "data": {"model": "mixture", "dim": 200, "weights": [0.5, 0.5], "rank": 1},
    "labels": {"model": "single-index", "link": "relu"},
    "network": {"convention": "mixture", "activation": "relu", "width_ratio": 1.0},
    "training": {"samples": 200, "ridge": 1e-4},
    "scaling": {"strength": 0.74, "weighting": 0.5},
    "compare": {"models": ["network", "hermite"], "seeds": 2, "seed": 0},
}


class Explorer:
    """`onegrad explore` as a process of its own, with a token of its own."""

    def __init__(self, *arguments, **environment):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "onegrad", "explore", "--no-browser", *arguments],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "XDG_STATE_HOME": KEPT} | environment,
        )  # fmt: skip
        line = self.process.stdout.readline()
        if "http://" not in line:
            raise RuntimeError(line + self.process.communicate(timeout=60)[1])
        self.address = line.split()[2]
        self.url, _, self.token = self.address.partition("?token=")
        self.port = int(re.search(r":(\d+)/", self.url)[1])

    def connect(self, **options):
        options.setdefault("origin", self.url.rstrip("/"))
        return connect(self.socket_url, max_size=None, **options)

    @property
    def socket_url(self):
        return f"ws://127.0.0.1:{self.port}/socket?token={self.token}"

    def processes(self):
        """Everything below the server: (pid, is it a worker?)."""
        found = []
        with contextlib.suppress(psutil.Error):
            for child in psutil.Process(self.process.pid).children(recursive=True):
                with contextlib.suppress(psutil.Error):
                    # the fork server is a child of ours, the workers are its children
                    found.append((child.pid, child.ppid() != self.process.pid))
        return found

    def workers(self):
        return [pid for pid, worker in self.processes() if worker]

    def memory(self):
        """Resident bytes of the server and all below it."""
        total = 0
        for pid in [self.process.pid, *(pid for pid, _ in self.processes())]:
            with contextlib.suppress(psutil.Error):
                total += psutil.Process(pid).memory_info().rss
        return total

    def stop(self):
        """End it as Ctrl-C does; what it printed as errors."""
        self.process.send_signal(signal.SIGINT)
        _, errors = self.process.communicate(timeout=60)
        return errors


def say(socket, kind, number, **fields):
    socket.send(json.dumps({"type": kind, "id": number, **fields}))


def collect(socket, number, timeout=90):
    """All parts of an answer, or its error text."""
    parts = {}
    while True:
        message = json.loads(socket.recv(timeout=timeout))
        if message.get("id") != number:
            continue
        if message["type"] != "parts":
            return message["text"]
        parts |= dict(message["parts"])
        if not message["left"]:
            return [parts[i] for i in range(len(parts))]


def eventually(check, seconds=60.0):
    """True as soon as `check()` is; False if it never becomes so: the machine may be busy."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if check():
            return True
        time.sleep(0.05)
    return False
