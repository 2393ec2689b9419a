"""Images of ours: an environment is prepared once in a box, kept as an image, and boxes start from it."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

import anyio
from packaging.requirements import Requirement

from codeenv.sandbox.api import Sandbox, SandboxError, SandboxSpec
from codeenv.sandbox.beam import image_cache
from codeenv.sandbox.beam.container import Container
from codeenv.sandbox.beam.gateway import Refused, Unreachable
from codeenv.sandbox.beam.image_cache import Made, is_met
from codeenv.sandbox.beam.provider import BeamProvider
from codeenv.sandbox.beam.records import fingerprint
from codeenv.sandbox.beam.sdk import Account

SETUP_SECONDS = 1800.0
SNAPSHOT_SECONDS = 1800.0
LIFE = SETUP_SECONDS + SNAPSHOT_SECONDS + 600.0
FOLDER = "/tmp/.codeenv-image"
LAST = 3000  # bytes of a setup's output that are kept
START = f"""
mkdir {FOLDER} || exit 0
shell=$(command -v bash || echo sh)
( cd /; $shell {FOLDER}.script > {FOLDER}/log 2>&1; echo $? > {FOLDER}/code.new; mv {FOLDER}/code.new {FOLDER}/code
) < /dev/null > /dev/null 2>&1 &
"""
LOOK = f"""
if [ -e {FOLDER}/code ]; then echo "ended $(cat {FOLDER}/code)"; else echo running; fi
tail -c {LAST} {FOLDER}/log
"""
TOKENS = r"""
{ tr '\0' '\n' < /proc/1/environ; env; } 2> /dev/null | grep -cE '^(BETA9|BEAM)_TOKEN=.'
echo told
"""
PACKAGES = """
import json
from importlib.metadata import distributions
print(json.dumps({each.metadata["Name"]: each.version for each in distributions() if each.metadata["Name"]}))
"""


class BuildFailed(Exception):
    """The environment could not be prepared: the fault of the recipe. The message has the end of what it printed."""


@dataclass(frozen=True)
class Recipe:
    """What to prepare: Python packages first, then a script, run by bash (else sh) as root with a network.

    `check` is a command that must succeed in a box of the image.
    """

    requirements: tuple[str, ...] = ()
    script: str = ""
    check: str = ""


def read_requirements(text: str) -> tuple[str, ...]:
    """The lines of a requirements file. :raises ValueError: one is not a plain requirement."""
    found: list[str] = []
    for line in text.splitlines():
        plain = line.split(" #")[0].strip()
        if not plain or plain.startswith("#"):
            continue
        if plain.startswith("-"):
            raise ValueError(f"requirements: options are not understood, put them into the script: {plain}")
        found.append(str(Requirement(plain)))  # InvalidRequirement is a ValueError
    return tuple(found)


async def build(
    provider: BeamProvider,
    spec: SandboxSpec,
    recipe: Recipe,
    *,
    again: bool = False,
    said: Callable[[str], None] = lambda line: None,
) -> Made:
    """Prepare, keep, verify and remember an image; at once when that was done before, unless `again`.

    `spec` is what it is made from and how large the box is that it is made in; `said` hears what is being done.

    :raises BuildFailed: the script or the check fails. :raises SandboxError: Beam fails.
    """
    key = _key(provider.account, spec, recipe)
    if not again and (known := image_cache.get(key)):
        return known
    started = time.monotonic()
    packages = (*spec.packages, *recipe.requirements)
    wanted = spec.model_copy(update={"network": True, "packages": packages, "ttl_seconds": LIFE})
    said("preparing")
    async with provider.bare(wanted) as (container, stub):
        provider.look_at(await _exposes_token(container))  # it would be in the image
        if recipe.script:
            await _set_up(container, recipe.script, said)
        said("keeping it as an image")
        image = await _keep(container, stub)
    said("verifying")
    plain = spec.model_copy(update={"image": f"id:{image}", "packages": ()})
    async with provider.create(plain) as box:
        found = await _verify(box, packages, recipe.check)
    made = Made(f"id:{image}", found, time.time(), time.monotonic() - started)
    image_cache.put(key, made)
    return made


async def _exposes_token(container: Container) -> bool:
    while True:
        count, _, end = (await container.run(["sh", "-c", TOKENS])).partition("\n")
        if end:  # else the reply was lost
            return count != "0"


async def _set_up(container: Container, script: str, said: Callable[[str], None]) -> None:
    await container.upload(f"{FOLDER}.script", script.encode())
    await container.run(["sh", "-c", START])
    end = time.monotonic() + SETUP_SECONDS
    delay, shown = 0.1, ""
    while True:
        status, _, log = (await container.run(["sh", "-c", LOOK])).partition("\n")
        last = log.strip().rpartition("\n")[2]
        if last and last != shown:
            said(shown := last)
        if status.startswith("ended "):
            break
        if time.monotonic() > end:
            raise BuildFailed(f"the script has not ended within {SETUP_SECONDS:.0f} s: {log}")
        await anyio.sleep(delay)
        delay = min(2.0, delay * 1.5)
    if (code := status.removeprefix("ended ").strip()) != "0":
        raise BuildFailed(f"the script failed with exit code {code}: {log.strip()}")
    await container.run(["sh", "-c", f"rm -rf {FOLDER} {FOLDER}.script; sync"])


async def _keep(container: Container, stub: str) -> str:
    """The id of an image of what is in it. Ids are a stub and a second: the stub must be this container's own."""
    try:
        reply = await container.gateway.call(
            "SandboxCreateImageFromFilesystem",
            container_id=container.id,
            stub_id=stub,
            seconds=SNAPSHOT_SECONDS,
            patience=0.0,
        )
    except (Refused, Unreachable) as error:
        raise SandboxError(f"Beam did not make an image: {error}", stage="image") from error
    if not reply.ok or not reply.image_id:
        raise SandboxError(f"Beam did not make an image: {reply.error_msg or 'it gave no reason'}", stage="image")
    return str(reply.image_id)


async def _verify(box: Sandbox, packages: Sequence[str], check: str) -> dict[str, str]:
    listed = await box.exec(["python3", "-c", PACKAGES], timeout=120, output_limit=1024 * 1024)
    if listed.exit_code:
        raise BuildFailed(f"python3 does not work in the image: {listed.stderr.decode(errors='replace')}")
    found: dict[str, str] = json.loads(listed.stdout)
    if missing := [each for each in packages if not is_met(each, found)]:
        raise BuildFailed(f"the image does not have {', '.join(missing)}")
    if check:
        done = await box.exec(check, timeout=600, combine=True)
        if done.exit_code:
            text = done.stdout[-LAST:].decode(errors="replace").strip()
            raise BuildFailed(f"the check failed in the image with exit code {done.exit_code}: {text}")
    return found


def _key(account: Account, spec: SandboxSpec, recipe: Recipe) -> str:
    made_from = spec.model_dump(include={"python", "image", "packages", "env", "gpu"}, mode="json")
    text = json.dumps([str(account), fingerprint(account), made_from, asdict(recipe)], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]
