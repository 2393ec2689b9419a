"""The Beam SDK, kept quiet: the source of truth for accounts, images and stubs, imported when it is first needed.

Left to itself it prints, prompts, exits the process and replaces `sys.excepthook`.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from codeenv.sandbox.api import SandboxError, SandboxUnavailable, UnsupportedSpec

WATCH_SECONDS = 5.0
_lock = threading.RLock()  # the SDK's channel and terminal are the whole process's


NOT_SET_UP = (
    "not set up: no Beam account is configured. Run `beam login` or set BEAM_TOKEN (self-hosted: also GATEWAY_HOST and "
    "GATEWAY_PORT)"
)


class NoAccount(SandboxUnavailable):
    """Nothing says which account to use."""


@dataclass(frozen=True)
class Account:
    """Where the gateway is, and as whom we come."""

    host: str
    port: int
    token: str = field(repr=False)

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass(frozen=True)
class Blueprint:
    """What boxes of one kind are made from: everything that Beam calls a stub. Memory in MiB, `ttl` in seconds."""

    image: str | None = None
    """A registry image, or `id:` and the id of an image that Beam has."""
    dockerfile: str | None = None
    python: str | None = None
    packages: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    """What is run, as root, while the image is built."""
    cpus: float = 1.0
    memory_mb: int = 512
    gpu: str | None = None
    ttl: int = 600
    network: bool = False
    allow: tuple[str, ...] = ()
    volumes: tuple[tuple[str, str], ...] = ()
    """Names of volumes, and where they are mounted."""
    secrets: tuple[str, ...] = ()
    pool: str | None = None
    name: str = "codeenv"


def _open(file: str, mode: str, **_: object) -> Any:
    return open(file, mode)


@contextmanager
def _quiet() -> Generator[None]:
    """With the SDK to ourselves: nothing printed, nothing asked, nothing of the process's changed for good."""
    with _lock:
        hook, asked = sys.excepthook, os.environ.get("BETA9_NO_INPUT")
        os.environ["BETA9_NO_INPUT"] = "1"
        try:
            from beta9 import terminal  # pyright: ignore[reportMissingTypeStubs]

            said: Any = terminal
            said._console.quiet = said._error_console.quiet = True
            said.progress_open = _open  # else a bar for 22 bytes
            yield
        finally:
            sys.excepthook = hook
            if asked is None:
                del os.environ["BETA9_NO_INPUT"]
            else:
                os.environ["BETA9_NO_INPUT"] = asked


def find_account(host: str | None = None, port: int | None = None, token: str | None = None) -> Account:
    """The account that is given; what is not given of it as beam-client has it: its configuration file, then the
    environment. Blocks for the SDK's import, about 1.5 s, the first time.

    :raises NoAccount: there is none.
    """
    if host and port and token:
        return Account(host, port, token)
    if not token and not _has_credentials():
        raise NoAccount(NOT_SET_UP, stage="probe")
    with _quiet():
        import beam  # noqa: F401  # pyright: ignore[reportMissingTypeStubs, reportUnusedImport]
        from beta9 import config  # pyright: ignore[reportMissingTypeStubs]

        sdk: Any = config
        stdin, sys.stdin = sys.stdin, open(os.devnull)  # noqa: SIM115
        try:
            context = sdk.get_config_context()
        except (SystemExit, Exception) as error:
            raise NoAccount(f"{NOT_SET_UP} ({error})", stage="probe") from error
        finally:
            sys.stdin.close()
            sys.stdin = stdin
    if not (token or context.token):
        raise NoAccount("the Beam account in use has no token: run `beam login` or set BEAM_TOKEN", stage="probe")
    return Account(host or str(context.gateway_host), port or int(context.gateway_port), token or str(context.token))


def _has_credentials() -> bool:
    """Whether it is worth the SDK's import to ask it."""
    file = Path(os.environ.get("CONFIG_PATH") or "~/.beam/config.ini").expanduser()
    return bool(os.environ.get("BETA9_TOKEN") or os.environ.get("BEAM_TOKEN")) or file.exists()


def make_stub(account: Account, blueprint: Blueprint) -> str:
    """The id of a new stub, its image built first where Beam does not have it. Blocks, for minutes while it builds.

    :raises UnsupportedSpec: Beam refuses what is asked for. :raises SandboxError: it could not be made.
    """
    with _quiet():
        from beta9.abstractions import base, sandbox, volume  # pyright: ignore[reportMissingTypeStubs]
        from beta9.config import ConfigContext  # pyright: ignore[reportMissingTypeStubs]

        sdk: Any = sandbox
        set_channel: Any = base.set_channel
        make_volume: Any = volume.Volume
        try:
            set_channel(
                context=ConfigContext(token=account.token, gateway_host=account.host, gateway_port=account.port)
            )
            box = sdk.Sandbox(
                name=blueprint.name,
                cpu=blueprint.cpus,
                memory=blueprint.memory_mb,
                image=_image(blueprint),
                keep_warm_seconds=blueprint.ttl,
                secrets=list(blueprint.secrets),
                volumes=[make_volume(name=name, mount_path=path) for name, path in blueprint.volumes],
                block_network=not blueprint.network and not blueprint.allow,
                allow_list=list(blueprint.allow) or None,
                **({"gpu": blueprint.gpu} if blueprint.gpu else {}),
                **({"pool": blueprint.pool} if blueprint.pool else {}),
            )
            ready = box.prepare_runtime(stub_type=sdk.SANDBOX_STUB_TYPE, force_create_stub=True, ignore_patterns=["*"])
        except (ValueError, TypeError) as error:
            raise UnsupportedSpec(f"Beam cannot provide this: {error}") from error
        except (SystemExit, Exception) as error:
            text = _reason(account, error)
            raise SandboxError(f"Beam did not prepare the sandbox: {text}", stage="create") from error
        finally:
            _drop_channel(base)
        if not ready or not box.stub_id:
            raise SandboxError("Beam refused to prepare the sandbox", stage="create")
        return str(box.stub_id)


def _drop_channel(base: Any) -> None:
    """Close the SDK's channel, once the thread that it has watch the connection is through: closed or let go before,
    that thread would fail, and unset alone it would stay."""
    from beta9.channel import channel_reconnect_event  # pyright: ignore[reportMissingTypeStubs]

    channel = base._channel
    base.unset_channel()
    if channel is None:
        return
    watched: Any = channel._channel
    watched.unsubscribe(channel_reconnect_event)
    end = time.monotonic() + WATCH_SECONDS
    while watched._connectivity_state.polling and time.monotonic() < end:
        time.sleep(0.02)  # it looks five times a second
    channel.close()


def _reason(account: Account, error: BaseException) -> str:
    """One line: a failed RPC shows as five."""
    import grpc

    if not isinstance(error, grpc.Call):
        return str(error)
    if error.code() in (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED):
        return f"{account} does not accept the token: run `beam login` or set BEAM_TOKEN"
    return f"{account}: {error.code().name} {error.details()}"


def _image(blueprint: Blueprint) -> Any:
    from beta9.abstractions import image  # pyright: ignore[reportMissingTypeStubs]

    sdk: Any = image.Image
    version = f"python{blueprint.python}" if blueprint.python else "python3.11"
    if blueprint.image and blueprint.image.startswith("id:"):
        return sdk.from_id(blueprint.image.removeprefix("id:"))
    if blueprint.dockerfile:
        made = sdk.from_dockerfile(blueprint.dockerfile)
    elif blueprint.image:
        made = sdk.from_registry(blueprint.image)
    else:
        made = sdk(python_version=version)
    if blueprint.packages:
        made = made.add_python_packages(list(blueprint.packages))
    if blueprint.commands:
        made = made.add_commands(list(blueprint.commands))
    return made


def message_types(service: str) -> Mapping[str, Any]:
    """The SDK's message classes of `pod`, `gateway`, `image`, by name."""
    name = f"beta9.clients.{service}"
    if name in sys.modules:  # no lock: event loops come here, and whoever has it may be building an image
        return vars(import_module(name))
    with _quiet():
        return vars(import_module(name))
