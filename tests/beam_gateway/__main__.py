"""`python -m tests.beam_gateway --port 0`: a gateway in a process of its own. Prints one line of JSON with host, port
and token, and serves until its stdin ends or it is interrupted."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import threading
from collections.abc import Callable
from functools import partial

import uvloop

from codeenv.sandbox import make_provider

from .profiles import PROFILES, Conduct
from .server import Gateway


def watch(ended: Callable[[], None]) -> None:
    while os.read(0, 4096):
        pass
    ended()


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--provider", default="bubblewrap")
    parser.add_argument("--profile", choices=PROFILES, default="newest")
    parser.add_argument("--conduct", type=json.loads, default={}, help="fields of Conduct, as JSON")
    arguments = parser.parse_args()
    conduct = Conduct(profile=PROFILES[arguments.profile], **arguments.conduct)
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    threading.Thread(target=watch, args=(partial(loop.call_soon_threadsafe, ended.set),), daemon=True).start()
    async with Gateway(provider=make_provider(arguments.provider), conduct=conduct, port=arguments.port) as gateway:
        print(json.dumps({"host": gateway.host, "port": gateway.port, "token": gateway.token}), flush=True)
        await ended.wait()


if __name__ == "__main__":
    uvloop.run(main())
