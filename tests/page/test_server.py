"""The server without a browser: who may come in, what is answered, what is left behind."""

import contextlib
import http.client
import json
import time

import psutil
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from onegrad.page.server import kept_token
from tests.page.server import SPEC, Explorer, collect, eventually, say


def get(explorer, path="/", token=True, **headers):
    path += f"?token={explorer.token}" if token else ""
    connection = http.client.HTTPConnection("127.0.0.1", explorer.port, timeout=60)
    with contextlib.closing(connection):
        connection.request("GET", path, headers={k.title(): v for k, v in headers.items()})
        response = connection.getresponse()
        return response.status, dict(response.getheaders()), response.read()


def test_its_own_page_is_served_with_a_strict_policy(explorer):
    status, headers, body = get(explorer)
    assert status == 200 and b"onegrad" in body
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy and "http:" not in policy
    assert "unsafe" not in policy and "*" not in policy
    assert headers["x-content-type-options"] == "nosniff"


ELSEWHERE = ["/docs", "/openapi.json", "/redoc", "/../pool.py", "/%2e%2e/app.py"]
STRANGERS = [
    "evil.example", "evil.example:{port}", "127.0.0.1.evil.example:{port}",
    "localhost.evil.example", "127.0.0.1:{port}@evil.example", "[::1", "a b",
]  # fmt: skip
KNOWN = ["127.0.0.1:{port}", "localhost:{port}", "localhost:9000", "127.0.0.1:9000", "[::1]:9000"]


@pytest.mark.parametrize("path", ELSEWHERE)
def test_nothing_else_is_served(explorer, path):
    assert get(explorer, path)[0] == 404


@pytest.mark.parametrize("host", STRANGERS)
def test_a_foreign_host_is_refused(explorer, host):
    """DNS rebinding: the browser believes that evil.example is this computer."""
    assert get(explorer, host=host.format(port=explorer.port))[0] == 403


@pytest.mark.parametrize("host", KNOWN)
def test_a_forwarded_port_is_welcome(explorer, host):
    """`ssh -L 9000:localhost:8471`: the browser says localhost:9000."""
    host = host.format(port=explorer.port)
    assert get(explorer, host=host, origin=f"http://{host}")[0] == 200
    assert get(explorer, host=host, origin="http://127.0.0.1:1")[0] == 403  # another port's page


def test_without_the_token_nobody_comes_in(explorer):
    """Other users of this computer: no page, no file, no socket."""
    origin = explorer.url.rstrip("/")
    for path in ("/", "/app.js", "/?token=", "/?token=wrong", "/socket"):
        status, _, body = get(explorer, path, token=False)
        assert status == 403 and b"address that `onegrad explore` has printed" in body
    for query in ("", "?token=wrong"):
        with pytest.raises(InvalidStatus) as refused:
            connect(f"ws://127.0.0.1:{explorer.port}/socket{query}", origin=origin).close()
        assert refused.value.response.status_code == 403
    status, headers, _ = get(explorer)
    assert status == 200
    kept = headers["set-cookie"]
    assert "HttpOnly" in kept and "SameSite=Strict" in kept and "Path=/" in kept
    cookie = kept.partition(";")[0]
    assert get(explorer, "/app.js", token=False, cookie=f"a=b; {cookie}")[0] == 200
    assert get(explorer, token=False, cookie=cookie[:-1])[0] == 403


def test_another_address():
    """`--host ::1`; and one that is none of this computer's is explained."""
    explorer = Explorer("--host", "::1")
    try:
        assert explorer.url == f"http://[::1]:{explorer.port}/"
        where = f"ws://[::1]:{explorer.port}/socket?token={explorer.token}"
        with connect(where, origin=explorer.url.rstrip("/"), max_size=None) as page:
            assert json.loads(page.recv())["type"] == "hello"
    finally:
        assert explorer.stop() == ""
    with pytest.raises(RuntimeError, match="--host must be an address") as refused:
        Explorer("--host", "300.1.1.1")
    assert "Traceback" not in str(refused.value)


def test_a_foreign_origin_is_refused(explorer):
    assert get(explorer, origin="http://evil.example")[0] == 403
    assert get(explorer, origin=explorer.url.rstrip("/"))[0] == 200
    for origin in ("http://evil.example", "null", f"https://127.0.0.1:{explorer.port}", None):
        with pytest.raises(InvalidStatus) as refused, explorer.connect(origin=origin):
            pass
        assert refused.value.response.status_code == 403
    with explorer.connect() as socket:  # the control: its own origin is welcome
        assert json.loads(socket.recv())["type"] == "hello"


def test_a_foreign_host_gets_no_socket(explorer):
    upgrade = {
        "connection": "Upgrade", "upgrade": "websocket", "origin": explorer.url.rstrip("/"),
        "sec-websocket-version": "13", "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
    }  # fmt: skip
    assert get(explorer, "/socket", host=f"evil.example:{explorer.port}", **upgrade)[0] == 403
    assert get(explorer, "/socket", **upgrade)[0] == 101  # the control


def test_it_listens_on_the_loopback_address_only(explorer):
    listening = [
        c.laddr.ip
        for c in psutil.Process(explorer.process.pid).net_connections()
        if c.status == psutil.CONN_LISTEN
    ]
    assert listening == ["127.0.0.1"]


WRONG = {
    "not JSON": ("{", "must be a JSON object"),
    "a list": ("[1]", "must be a JSON object"),
    "no type": ('{"id": 1}', "type (missing)"),
    "unknown type": ('{"type": "curves", "id": 1}', 'Did you mean "curve"'),
    "unknown key": ('{"type": "stop", "id": 1, "path": "x"}', "path"),
    "deep": ("[" * 20_000, "must be a JSON object"),
    "a key of Python's own": ('{"type": "stop", "id": 1, "cls": 2}', "cls"),
    "half a character": (json.dumps({"type": "\ud800", "id": 1}), "must be"),
    "nothing in a sweep": (
        json.dumps({"type": "spec", "id": 1, "spec": SPEC | {"sweep": {"training.rate": [None]}}}),
        "has no form in TOML",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_message_gets_advice(explorer, name):
    text, advice = WRONG[name]
    with explorer.connect() as socket:
        socket.recv()
        socket.send(text)
        answer = json.loads(socket.recv(timeout=90))
        assert answer["type"] == "error" and advice in answer["text"]
        say(socket, "curve", 7, spec=SPEC, coarse=True)  # and the page goes on
        assert collect(socket, 7)[0]["test_error"] > 0


def change(key, value):
    table, _, name = key.partition(".")
    return SPEC | {table: SPEC.get(table, {}) | {name: value}} if name else SPEC | {key: value}


REFUSED = {
    "out of range": ("curve", change("scaling.strength", 3), "must be a number from 0 to 1"),
    "unknown key": ("curve", change("scaling.strenght", 0.5), 'Did you mean "strength"'),
    "a file": ("curve", change("data", {"model": "file", "path": "/etc/passwd"}), "data.model"),
    "a data set": ("curve", change("data", {"model": "fashion-mnist"}), "data.model"),
    "swept files": ("curve", change("sweep", {"data.model": ["file"]}), "cannot be swept"),
    "a device": ("simulate", change("compare.device", "cuda"), "compare.device"),
    "many points": ("curve", change("sweep", {"data.mean": [0.5] * 1001}), "at most 1000"),
    "many spikes": ("curve", change("data.rank", 100), "spikes"),
    "a large network": ("simulate", change("data.dim", 100_000), "too large to simulate"),
    "many seeds": ("simulate", change("compare.seeds", 5000), "at most 2000"),
    "no number of seeds": ("simulate", change("compare.seeds", "auto"), "must be a number"),
    "a large draw": ("draw", change("training.samples", 4000), "too large to draw"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_every_spec_is_held_to_the_rules(explorer, name):
    kind, spec, advice = REFUSED[name]
    with explorer.connect() as socket:
        say(socket, kind, 3, spec=spec)
        answer = collect(socket, 3)
        assert isinstance(answer, str) and advice in answer


def test_a_long_message_ends_the_connection(explorer):
    with explorer.connect() as socket:
        socket.recv()
        socket.send("x" * 1_000_000)
        with pytest.raises(ConnectionClosed):
            socket.recv(timeout=90)


def test_a_new_request_cancels_the_old_one(explorer):
    large = SPEC | {
        "data": SPEC["data"] | {"dim": 1500},
        "training": {"samples": 1500},
        "compare": {"models": ["network"], "seeds": 200},
    }
    with explorer.connect() as socket:
        say(socket, "simulate", 1, spec=large)
        say(socket, "simulate", 2, spec=SPEC)
        assert len(collect(socket, 2, timeout=120)) == 2  # does not wait for 200 large ones


def busy(explorer):
    """Workers that are computing at this moment."""

    def spent(pid):
        with contextlib.suppress(psutil.Error):  # it may have ended
            return psutil.Process(pid).cpu_times().user
        return 0.0

    before = {pid: spent(pid) for pid in explorer.workers()}
    time.sleep(3.0)  # on a busy machine they get little of a second
    return [pid for pid, t in before.items() if spent(pid) > t + 0.02]


def test_closing_the_page_ends_its_work():
    explorer = Explorer()
    try:
        many = SPEC | {
            "data": SPEC["data"] | {"dim": 1500},
            "training": SPEC["training"] | {"samples": 1500},
            "compare": {"models": ["network"], "seeds": 500},
        }
        with explorer.connect() as socket:
            say(socket, "simulate", 1, spec=many)
            assert eventually(lambda: busy(explorer))
        assert eventually(lambda: not busy(explorer))
    finally:
        assert explorer.stop() == ""
    assert explorer.process.returncode == 0
    assert explorer.workers() == []


def test_a_kept_token_is_the_users_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    token = kept_token()
    assert kept_token() == token
    file = tmp_path / "onegrad" / "page-token"
    assert file.stat().st_mode & 0o777 == 0o600
    file.chmod(0o644)  # others may have read it
    assert kept_token() != token
