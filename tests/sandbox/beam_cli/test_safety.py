"""What using Beam does not do to a process, and where the account's token is not."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from codeenv.sandbox import get_provider, make_provider
from codeenv.sandbox.api import SandboxError, SandboxSpec
from codeenv.sandbox.beam.provider import BeamProvider
from codeenv.sandbox.beam.sdk import Account, NoAccount, find_account
from tests.beam_gateway.profiles import PROFILES, Conduct
from tests.beam_gateway.server import Gateway

pytestmark = pytest.mark.anyio

USE = """
import os, sys, threading
import anyio
hook = sys.excepthook
from codeenv import get_provider, SandboxSpec
async def main():
    provider = get_provider("beam")
    async with provider.create(SandboxSpec()) as box:
        assert (await box.exec("cat")).stdout == b""
    text = repr(provider) + repr(vars(provider)) + repr(provider.account) + str(provider.probe())
    assert os.environ["BEAM_TOKEN"] not in text, text
anyio.run(main)
assert sys.excepthook is hook, sys.excepthook
assert "BETA9_NO_INPUT" not in os.environ
import gc; gc.collect()
def left():
    names = [thread.name for thread in threading.enumerate() if thread is not threading.main_thread()]
    return [name for name in names if "grpc" not in name.lower() and "poll" not in name.lower()]
import time
end = time.monotonic() + 10
while left() and time.monotonic() < end:  # those that have been told to end
    time.sleep(0.01)
assert not left(), left()
"""
NOBODY = """
from codeenv import get_provider
from codeenv.sandbox.api import SandboxUnavailable
try:
    get_provider("beam")
except SandboxUnavailable as error:
    assert "not set up" in str(error), error
else:
    raise AssertionError
"""
BROKEN = NOBODY.replace('"not set up"', '"no token"') + "import sys; assert sys.excepthook is sys.__excepthook__"


def on_a_terminal(code: str, env: dict[str, str]) -> tuple[int, str]:
    """The exit code, and all that is shown, of a process whose stdin, stdout and stderr are a terminal."""
    ours, theirs = pty.openpty()
    with subprocess.Popen([sys.executable, "-c", code], stdin=theirs, stdout=theirs, stderr=theirs, env=env) as process:
        os.close(theirs)
        shown = b""
        try:
            while data := os.read(ours, 65536):
                shown += data
        except OSError:  # all ends are closed
            pass
        finally:
            os.close(ours)
        return process.wait(60), shown.decode()


async def test_a_terminal_sees_nothing_and_the_process_is_as_it_was(somebody: dict[str, str]) -> None:
    assert await anyio.to_thread.run_sync(on_a_terminal, USE, somebody) == (0, "")


@pytest.mark.parametrize(
    ("code", "config"),
    [(NOBODY, ""), (BROKEN, "[default]\ngateway_host = 127.0.0.1\ngateway_port = 1\n"), (NOBODY, "[other]\ntoken=x\n")],
    ids=["nothing", "no-token", "no-default"],
)
async def test_without_an_account_nobody_is_asked(
    code: str, config: str, nobody: dict[str, str], tmp_path: Path
) -> None:
    if config:
        folder = tmp_path / ".beam"
        folder.mkdir()
        (folder / "config.ini").write_text(config)
    assert await anyio.to_thread.run_sync(on_a_terminal, code, nobody) == (0, "")


@pytest.mark.parametrize(
    "code",
    [
        "import codeenv",
        "import codeenv.sandbox",
        "import codeenv.cli",
        "import codeenv; codeenv.get_provider, codeenv.SandboxSpec, codeenv.load_tasks",
    ],
)
def test_importing_imports_nothing_of_beams(code: str) -> None:
    end = "import sys; print(sorted({'beta9', 'beam', 'grpc', 'betterproto'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", f"{code}; {end}"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_nobody_pays_for_the_sdk_to_hear_that_there_is_no_account(nobody: dict[str, str]) -> None:
    code = (
        "import sys, codeenv.sandbox as s\n"
        "probe = s.make_provider('beam').probe()\n"
        "assert not probe.available and 'not set up' in probe.error, probe\n"
        "print(sorted({'beta9', 'beam', 'betterproto'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=nobody)
    assert done.stdout.strip() == "[]", done.stderr


LOOK = r"""
cat /proc/*/environ /proc/*/cmdline 2> /dev/null | tr '\0' '\n'
find / -xdev -type f -size -2000k \( -path /proc -o -path /sys -o -path /usr \) -prune -o -type f -print0 2> /dev/null |
    xargs -0 cat 2> /dev/null
find /tmp /workspace /dev/shm /var/tmp -type f -print0 2> /dev/null | xargs -0 cat 2> /dev/null
"""


async def test_the_token_is_nowhere_in_a_box(gateway: Gateway, nobody: dict[str, str]) -> None:
    provider = make_provider("beam", host=gateway.host, port=gateway.port, token=gateway.token)
    async with provider.create(SandboxSpec()) as box:
        await box.write_file("bait", b"seen by this search\n")
        done = await box.exec(f"({LOOK}) > /dev/shm/all; grep -c 'seen by this search' /dev/shm/all", timeout=60)
        assert int(done.stdout) >= 1
        token = gateway.token[:-1], gateway.token[-1]  # not as a whole in what is run
        done = await box.exec(f"grep -c '{token[0]}''{token[1]}' /dev/shm/all")
        assert done.stdout == b"0\n"


@pytest.mark.parametrize(
    ("how", "refused", "warned"),
    [("refuse", True, False), ("warn", False, True), ("allow", False, False)],
)
@pytest.mark.parametrize("profile", ["august-2026", "newest"])
async def test_a_box_that_shows_the_token_is_refused_or_warned_of(
    profile: str, how: str, refused: bool, warned: bool, gateway: Gateway, nobody: dict[str, str],
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    gateway.conduct = Conduct(profile=PROFILES[profile])
    provider = make_provider("beam", host=gateway.host, port=gateway.port, token=gateway.token, token_in_box=how)
    shown, error = PROFILES[profile].token_in_box, ""
    try:
        async with provider.create(SandboxSpec()) as box:
            assert (await box.exec("echo ok")).stdout == b"ok\n"
    except SandboxError as raised:
        error = str(raised)
    assert ("can read the account's Beam token" in error) == (refused and shown)
    assert ("can read the account's Beam token" in caplog.text) == (warned and shown)
    assert gateway.token not in error + caplog.text


def test_a_token_is_in_no_repr() -> None:
    account = Account("gateway.example", 443, "hush-hush")
    provider = BeamProvider(host="gateway.example", port=443, token="hush-hush")
    assert "hush" not in f"{account!r} {account} {provider!r} {provider.account} {provider.probe()}"


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"token": "hush", "prot": 1}, "unknown settings of sandbox 'beam': prot; valid: host, port, token,"),
        ({"token": "hush", "port": "hush"}, "port: Input should be a valid integer"),
        ({"token": ["hush"]}, "token: Input should be a valid string"),
        ({"token_in_box": "hush"}, "token_in_box: Input should be 'refuse', 'warn' or 'allow'"),
    ],
    ids=["unknown", "type", "token", "choice"],
)
def test_faults_of_settings_name_them_and_show_no_value(settings: dict[str, object], says: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        get_provider("beam", **settings)
    assert says in str(caught.value)
    assert "hush" not in str(caught.value)


def test_what_is_given_of_an_account_counts_before_what_is_configured(
    nobody: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "config.ini").write_text("[default]\ntoken=hush\ngateway_host=gateway.example\ngateway_port=443\n")
    code = (
        "from codeenv.sandbox.beam.sdk import find_account\n"
        "for given in [(), ('other.example',), (None, 1993), ('other.example', 1993, 'mine')]:\n"
        "    account = find_account(*given)\n"
        "    print(account, account.token)"
    )
    env = {**nobody, "CONFIG_PATH": str(tmp_path / "config.ini")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)
    assert done.stdout.splitlines() == [
        "gateway.example:443 hush", "other.example:443 hush", "gateway.example:1993 hush", "other.example:1993 mine",
    ], done.stderr  # fmt: skip
    monkeypatch.setenv("CONFIG_PATH", str(tmp_path / "missing.ini"))
    with pytest.raises(NoAccount, match="not set up"):
        find_account("other.example", 1993)
