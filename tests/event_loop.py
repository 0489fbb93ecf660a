"""Coroutines in tests, whether or not the browser's own event loop runs in this thread."""

import asyncio
from concurrent.futures import ThreadPoolExecutor


def run(coroutine):
    """Its result; it runs in a thread of its own."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, coroutine).result()
