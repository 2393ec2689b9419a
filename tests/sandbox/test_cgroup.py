"""Control groups are handed from one box to the next, and none is left when the process ends."""

from __future__ import annotations

import subprocess
import sys

import pytest

from codeenv.sandbox.api import MiB
from codeenv.sandbox.cgroup import PREFIX, Hierarchy, hierarchy

SIZE = 65 * MiB


@pytest.fixture
def groups() -> Hierarchy:
    found = hierarchy()
    if found is None:
        pytest.skip("no control group can be made on this host")
    return found


def test_an_empty_group_serves_the_next_box_of_its_size(groups: Hierarchy) -> None:
    group = groups.make(SIZE)
    group.give_back()
    try:
        other = groups.make(2 * SIZE)
        again = groups.make(SIZE)
        third = groups.make(SIZE)
        assert again == group
        assert len({group.path, other.path, third.path}) == 3
    finally:
        for made in (group, other, third):
            made.remove()


def test_a_group_in_which_memory_ran_out_serves_no_other(groups: Hierarchy) -> None:
    group = groups.make(SIZE)
    enter = "import os, sys; open(sys.argv[1], 'w').write('0'); x = bytearray(200 << 20); x[::4096] = x[::4096]"
    done = subprocess.run([sys.executable, "-c", enter, str(group.path / "cgroup.procs")], check=False)
    assert done.returncode == -9
    assert group.out_of_memory() == 1
    group.give_back()
    assert not group.path.exists()


def test_a_group_with_a_process_in_it_serves_no_other(groups: Hierarchy) -> None:
    group = groups.make(SIZE)
    with subprocess.Popen(["sleep", "60"]) as process:
        (group.path / "cgroup.procs").write_text(str(process.pid))
        group.give_back()
        other = groups.make(SIZE)
        process.kill()
    for made in (group, other):
        made.remove()
    assert other != group


def test_none_is_left_when_the_process_ends(groups: Hierarchy) -> None:
    script = """
import os
import anyio
from codeenv.sandbox import get_provider
from codeenv.sandbox.api import SandboxSpec

async def main():
    for _ in range(3):
        async with get_provider("bubblewrap").create(SandboxSpec()):
            pass

anyio.run(main)
print(os.getpid())
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert not list(groups.parent.glob(f"{PREFIX}{done.stdout.strip()}-*"))
