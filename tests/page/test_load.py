"""Fifty people move sliders at once: nothing fails, memory stays bounded, no worker stays behind.

ONEGRAD_LOAD_SECONDS=60 makes it the full minute; by default it is shorter.
"""

import asyncio
import contextlib
import json
import os
import random

import pytest
from websockets.asyncio.client import connect

from tests import event_loop
from tests.page.server import SPEC, Explorer, eventually

SECONDS = float(os.environ.get("ONEGRAD_LOAD_SECONDS", "15"))
CLIENTS = 50


async def person(explorer, number, counts):
    """Moves a slider all the time, simulates now and then, and reads whatever comes.

    Like the page, it moves on when the curve has come, or after twice the time of the last one.
    """
    choose = random.Random(number)
    origin = explorer.url.rstrip("/")
    async with connect(explorer.socket_url, origin=origin, max_size=None) as socket:
        come = asyncio.Event()

        async def read():
            async for text in socket:
                message = json.loads(text)
                counts[message["type"]] = counts.get(message["type"], 0) + 1
                if message["type"] == "error":
                    counts.setdefault("texts", []).append(message["text"])
                if message["type"] == "parts":
                    if message["done"]:
                        counts["finished"] = counts.get("finished", 0) + 1
                        come.set()
                    counts["answers"] = counts.get("answers", 0) + len(message["parts"])
                    counts["wrong"] = counts.get("wrong", 0) + sum(
                        "error" in part for _, part in message["parts"] if isinstance(part, dict)
                    )

        reading = asyncio.create_task(read())
        end = asyncio.get_running_loop().time() + SECONDS
        identity, patience = 0, 0.4
        while asyncio.get_running_loop().time() < end:
            identity += 1
            beta, alpha = (round(choose.uniform(0, 1), 3) for _ in range(2))
            spec = SPEC | {"scaling": {"strength": beta, "weighting": alpha}}
            sweep = {"network.width_ratio": [0.1 * 100 ** (i / 19) for i in range(20)]}
            kind, coarse = "curve", choose.random() < 0.8
            if choose.random() < 0.05:
                kind, sweep = "simulate", {"network.width_ratio": [0.3, 1.0]}
            message = {"type": kind, "id": identity, "spec": spec | {"sweep": sweep}}
            await socket.send(json.dumps(message | {"coarse": coarse}))
            counts["sent"] = counts.get("sent", 0) + 1
            sent = asyncio.get_running_loop().time()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(come.wait(), patience)
            took = asyncio.get_running_loop().time() - sent
            patience = min(3.0, max(0.4, 2 * took))
            come.clear()
            await asyncio.sleep(0.02)
        reading.cancel()


async def crowd(explorer, counts):
    people = [person(explorer, i, counts) for i in range(CLIENTS)]
    memory = [explorer.memory()]

    async def watch():
        while True:
            await asyncio.sleep(1.0)
            memory.append(await asyncio.to_thread(explorer.memory))

    watching = asyncio.create_task(watch())
    await asyncio.gather(*people)
    watching.cancel()
    return memory


@pytest.mark.slow
@pytest.mark.alone
def test_fifty_people_at_once():
    explorer = Explorer()
    counts = {}
    try:
        memory = event_loop.run(crowd(explorer, counts))
        print(f"{counts}, memory {min(memory) >> 20} to {max(memory) >> 20} MB")
        assert "error" not in counts, counts["texts"][:3]
        assert counts["wrong"] == 0
        assert counts["hello"] == CLIENTS
        assert counts["finished"] > 0.3 * SECONDS  # it answers even to people who never rest
        assert max(memory) < 2e9
        half = memory[len(memory) // 2 :]
        assert max(half) < 1.25 * max(memory[: len(memory) // 2]) + 1e8  # and does not grow
        assert eventually(lambda: explorer.workers() == [], 15)
    finally:
        errors = explorer.stop()
    assert errors == ""
    assert explorer.process.returncode == 0
