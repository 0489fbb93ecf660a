"""Hostile clients: after each the server is as before, with the same sessions, workers, memory.

The server's time-outs are made short (counting.py); ONEGRAD_HOSTILE=1 keeps them as they are, and
multiplies the clients.
"""

import contextlib
import json
import socket
import struct
import time
import urllib.request

import psutil
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from onegrad.page import bounds
from tests.page.counting import LONG, PATIENCE
from tests.page.server import SPEC, Explorer, collect, eventually, say

MESSAGE = {"type": "spec", "spec": SPEC}
EXCHANGE_SECONDS = bounds.EXCHANGE_SECONDS if LONG else PATIENCE
CLIENTS = 300 if LONG else 100
NOTHING = {"pages": 0, "sessions": 0, "tasks": 0, "http": 0}


@pytest.fixture(scope="module")
def explorer():
    running = Explorer(module="tests.page.counting")
    compute(running)  # what is loaded with the first page counts as before
    for _ in range(10):
        shout_and_hang_up(running)
    assert eventually(lambda: not running.workers(), 60)
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
    """Sessions, workers, open sockets and memory, before and after."""
    memory = explorer.memory()
    assert eventually(lambda: explorer.held() == NOTHING, 60), explorer.held()
    yield
    assert eventually(lambda: sockets(explorer) == 0, 60)
    assert eventually(lambda: not explorer.workers(), 60)
    assert eventually(lambda: explorer.held() == NOTHING, 60), explorer.held()
    assert explorer.memory() < 1.05 * memory + 10e6
    say_hello(explorer)
    assert eventually(lambda: not explorer.workers(), 60)


def raw_page(explorer):
    """A WebSocket without anything that would read from it."""
    opened = socket.create_connection(("127.0.0.1", explorer.port))
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    host = f"127.0.0.1:{explorer.port}"
    opened.sendall(
        f"GET /socket?token={explorer.token} HTTP/1.1\r\nHost: {host}\r\n"
        f"Origin: http://{host}\r\nUpgrade: websocket\r\n"
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


def send_many(opened, count, patience=0.2):
    """As many messages as the server takes; it stops reading when its answers are not read."""
    opened.settimeout(patience)
    for number in range(count):
        try:
            opened.sendall(frame(json.dumps(MESSAGE | {"id": number})))
        except (TimeoutError, OSError):
            return number
    return count


def shout_and_hang_up(explorer, resets=False):
    """900 messages, nothing read."""
    with contextlib.closing(raw_page(explorer)) as page:
        send_many(page, 900)
        if resets:
            page.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


@pytest.mark.parametrize("farewell", ["closes", "resets"])
def test_many_messages_read_by_nobody(explorer, as_before, farewell):
    """As many clients as pages are let in: they leave nothing behind, and a page still comes in."""
    for _ in range(CLIENTS // 2):
        shout_and_hang_up(explorer, farewell == "resets")
    compute(explorer)


def test_many_at_once(explorer, as_before):
    """Half as many as are let in, together, and a page computes beside them."""
    pages = [raw_page(explorer) for _ in range(bounds.PAGES // 2)]
    for page in pages:
        send_many(page, 150, patience=0.05)
    compute(explorer)
    for page in pages:
        page.close()


def test_a_page_that_stays_and_reads_nothing_is_closed(explorer, as_before):
    page = raw_page(explorer)
    assert 100 < send_many(page, 100_000, patience=2) < 100_000
    assert eventually(lambda: sockets(explorer) == 0, 60)  # it does not read, answers no ping
    page.close()


def test_pages_that_read_a_little_are_closed(explorer, as_before):
    """Some have answers waiting in the server, but so few that it could go on writing: these are
    found out by the ping that nobody answers."""
    pages = [raw_page(explorer) for _ in range(12)]
    for number, page in enumerate(pages):
        send_many(page, 25 * number, patience=0.05)
    assert eventually(lambda: sockets(explorer) == 0, 60)
    for page in pages:
        page.close()


def test_answers_that_nobody_reads_are_dropped(explorer, as_before):
    asked = f"GET /?token={explorer.token} HTTP/1.1\r\nHost: 127.0.0.1:{explorer.port}\r\n\r\n"
    opened = socket.create_connection(("127.0.0.1", explorer.port))
    opened.settimeout(0.5)
    with contextlib.suppress(TimeoutError):
        for _ in range(3000):
            opened.sendall(asked.encode())
    assert eventually(lambda: sockets(explorer) == 0, 60)
    opened.close()


def test_half_sent_requests_are_dropped_and_keep_nobody_out(explorer, as_before):
    """450 of them at once: a page comes in all the time, and after a time-out they are gone."""
    half = []
    for _ in range(450):
        opened = socket.create_connection(("127.0.0.1", explorer.port))
        opened.sendall(b"GET / HTTP/1.1\r\nHost: 127")
        half.append(opened)
    with urllib.request.urlopen(explorer.address, timeout=60) as page:
        assert page.status == 200
    assert sockets(explorer) <= bounds.WAITING + 2
    say_hello(explorer)
    assert eventually(lambda: sockets(explorer) == 0, EXCHANGE_SECONDS + 60)
    for opened in half:
        opened.close()


def test_a_request_that_trickles_is_dropped(explorer, as_before):
    opened = socket.create_connection(("127.0.0.1", explorer.port))
    start = time.monotonic()
    with pytest.raises(OSError):
        while time.monotonic() - start < EXCHANGE_SECONDS + 60:
            opened.sendall(b"G")
            time.sleep(0.2)
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
        page = connect(explorer.socket_url, origin=explorer.url.rstrip("/"))
        with page, contextlib.suppress(ConnectionClosed):
            page.send(text)
            page.send(b"\0\1")
            say(page, "spec", 2, spec=SPEC)


def test_the_page_still_computes(explorer):
    compute(explorer)
