"""`python -m tests.beam_gateway --port 0`: a gateway in a process of its own. Prints one line of JSON with host, port
and token, and serves until its stdin ends or it is interrupted."""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import sys

from codeenv.sandbox import make_provider
from codeenv.sandbox.api import SandboxSpec

from .profiles import PROFILES, Conduct
from .server import Gateway


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--provider", default="bubblewrap")
    parser.add_argument("--profile", choices=PROFILES, default="newest")
    parser.add_argument("--poll", type=float, default=0.0, help="seconds between the server's looks at a command")
    parser.add_argument("--packages", nargs="*", default=[], help="Python packages that every box has")
    arguments = parser.parse_args()
    conduct = Conduct(profile=PROFILES[arguments.profile], inline_poll=arguments.poll)
    spec = SandboxSpec(packages=tuple(arguments.packages))
    provider = make_provider(arguments.provider)
    async with Gateway(provider=provider, spec=spec, conduct=conduct, port=arguments.port) as gateway:
        print(json.dumps({"host": gateway.host, "port": gateway.port, "token": gateway.token}), flush=True)
        loop, ended = asyncio.get_running_loop(), asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, ended.set)
        loop.run_in_executor(None, sys.stdin.buffer.read).add_done_callback(lambda _: ended.set())
        await ended.wait()


if __name__ == "__main__":
    asyncio.run(main())
