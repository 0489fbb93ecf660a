"""Hostile clients: after each the server is as before, with the same sessions, workers, memory."""

import json
import os
import socket
import struct
import time
import urllib.request

import psutil
import pytest
from websockets.sync.client import connect

from onegrad.explorer.bounds import EXCHANGE_SECONDS, WAITING
from tests.page.server import SPEC, Explorer, collect, eventually, say

MESSAGE = {"type": "spec", "spec": SPEC}
# They wait for time-outs of many seconds, and one of them has failed once beside other work.
pytestmark = pytest.mark.skipif("ONEGRAD_HOSTILE" not in os.environ, reason="set ONEGRAD_HOSTILE=1")


@pytest.fixture(scope="module")
def explorer():
    running = Explorer()
    compute(running)  # what is loaded with the first page counts as before
    assert eventually(lambda: not running.workers(), 30)
    yield running
    assert "Traceback" not in running.stop()


def say_hello(explorer):
    with explorer.connect() as page:
        page.recv(timeout=30)
        say(page, "spec", 1, spec=SPEC)
        while json.loads(page.recv(timeout=30)).get("id") != 1:
            pass


def compute(explorer):
    with explorer.connect() as page:
        say(page, "curve", 7, coarse=True, spec=SPEC | {"sweep": {"network.width_ratio": [0.5, 1]}})
        assert len(collect(page, 7)) == 2


def sockets(explorer):
    return len(psutil.Process(explorer.process.pid).net_connections("tcp")) - 1  # that listens


@pytest.fixture
def as_before(explorer):
    """Sessions (without any, workers end), workers, open sockets and memory, before and after."""
    memory = explorer.memory()
    yield
    assert eventually(lambda: sockets(explorer) == 0, 60)
    assert eventually(lambda: not explorer.workers(), 30)
    assert explorer.memory() < 1.05 * memory + 10e6
    say_hello(explorer)
    assert eventually(lambda: not explorer.workers(), 30)


def raw_page(explorer):
    """A WebSocket without anything that would read from it."""
    opened = socket.create_connection(("127.0.0.1", explorer.port))
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    host = f"127.0.0.1:{explorer.port}"
    opened.sendall(
        f"GET /socket HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\nUpgrade: websocket\r\n"
        "Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
        "Sec-WebSocket-Version: 13\r\n\r\n".encode()
    )
    answer = b""
    while not answer.endswith(b"\r\n\r\n"):
        answer += opened.recv(1)
    return opened


def frame(text):
    data = text.encode()
    head = bytes([0x81, 0xFE]) + struct.pack(">H", len(data)) + b"\0\0\0\0"
    return head + data


def send_many(opened, count):
    """As many messages as the server takes; it stops reading when its answers are not read."""
    opened.settimeout(2.0)
    for number in range(count):
        try:
            opened.sendall(frame(json.dumps(MESSAGE | {"id": number})))
        except (TimeoutError, OSError):
            return number
    return count


@pytest.mark.parametrize("farewell", ["closes", "resets"])
def test_many_messages_read_by_nobody(explorer, as_before, farewell):
    """900 messages, nothing read, and it hangs up: five of them leave nothing behind."""
    for _ in range(5):
        page = raw_page(explorer)
        send_many(page, 900)
        if farewell == "resets":
            page.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        page.close()


def test_a_page_that_stays_and_reads_nothing_is_closed(explorer, as_before):
    page = raw_page(explorer)
    assert 900 < send_many(page, 100_000) < 100_000
    assert eventually(lambda: sockets(explorer) == 0, 60)  # not read for 10 s, no ping answered
    page.close()


def test_half_sent_requests_are_dropped_and_keep_nobody_out(explorer, as_before):
    """450 of them at once: a page comes in all the time, and after ten seconds they are gone."""
    half = []
    for _ in range(450):
        opened = socket.create_connection(("127.0.0.1", explorer.port))
        opened.sendall(b"GET / HTTP/1.1\r\nHost: 127")
        half.append(opened)
    start = time.monotonic()
    with urllib.request.urlopen(explorer.url, timeout=10) as page:
        assert page.status == 200
    assert sockets(explorer) <= WAITING + 2
    say_hello(explorer)
    assert eventually(lambda: sockets(explorer) == 0, EXCHANGE_SECONDS + 20)
    assert time.monotonic() - start < EXCHANGE_SECONDS + 25
    for opened in half:
        opened.close()


def test_a_request_that_trickles_is_dropped(explorer, as_before):
    opened = socket.create_connection(("127.0.0.1", explorer.port))
    start = time.monotonic()
    with pytest.raises(OSError):
        while time.monotonic() - start < EXCHANGE_SECONDS + 20:
            opened.sendall(b"G" if time.monotonic() - start < 0.3 else b"x")
            time.sleep(0.3)
    opened.close()


def test_pages_that_ask_for_work_and_vanish(explorer, as_before):
    sweep = {"network.width_ratio": [0.2, 0.5, 1.0]}
    wanted = {"type": "simulate", "id": 1, "spec": SPEC | {"sweep": sweep}}
    for _ in range(10):
        page = raw_page(explorer)
        page.sendall(frame(json.dumps(wanted)))
        page.close()


def test_nonsense_is_answered_or_closed(explorer, as_before):
    texts = ["", "{", "[" * 30_000, '"\\ud800"', json.dumps({"type": "curve", "id": 10**400}),
             json.dumps({"type": "curve", "id": 1, "spec": {"name": "[/]" * 3000}})]  # fmt: skip
    for text in texts:
        with connect(
            f"ws://127.0.0.1:{explorer.port}/socket", origin=explorer.url.rstrip("/")
        ) as page:
            page.send(text)
            page.send(b"\0\1")
            say(page, "spec", 2, spec=SPEC)


def test_the_page_still_computes(explorer):
    compute(explorer)
