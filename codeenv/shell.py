"""A shell that lasts for an episode and cannot be broken.

Each call is a fresh `bash`, so no command can leave a later one hanging in an open quote or a dead process; the working
directory and the exported variables are handed from one call to the next. They come back over the command's stderr,
which is free for it since the command's own output goes to stdout in order.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

from codeenv.sandbox.api import ExecResult, MiB, Sandbox

ENVIRONMENT_LIMIT = 90_000  # bytes; the kernel takes 131,072 in one variable
STATE_LIMIT = 2 * ENVIRONMENT_LIMIT  # of it and what else may stand on that stream; half is kept of each end
START, END = b"\0state\0", b"\0end\0"
KEPT_OUTPUTS = 8  # files with whole outputs that stay in the box, and
KEPT_BYTES = 128 * MiB  # their size in all: they share the disk with everything else

# Everything comes in by variables, so that `pkill -f` or `ps` in a command do not meet the command itself. Descriptor
# 137 is one that no script uses. What a command can redefine is called through `builtin`. The last group is read as a
# whole: a syntax error in the command makes bash drop what it has read, and no more of ours may follow it.
WRAPPER = r"""
exec 137>&2 2>&1
set -- "$__codeenv_command" "$__codeenv_exports" "$__codeenv_cwd" "$__codeenv_workdir"
if [[ -z $1 ]]; then set -- "$(</dev/stdin)" "${@:2}"; exec </dev/null; fi
unset -v ${!__codeenv_*}
__codeenv_save() {
  { builtin set +eux; builtin printf '\0state\0%s\0' "${PWD-}"; builtin export -p; builtin printf '\0end\0'; } >&137
} 2>/dev/null
readonly -f __codeenv_save
if [[ $2 ]]; then unset -v $(compgen -e); fi
if ! cd -- "$3" 2>/dev/null; then
  if cd -- "$4" 2>/dev/null; then echo "[the directory $3 is gone; now in $4]"
  else cd /; echo "[the directory $3 cannot be entered; now in /]"; fi
  set -- "$1" "$2" "$PWD"
fi
unset OLDPWD
export OLDPWD
eval "$2" 2>/dev/null
[[ $PWD == "$3" ]] || PWD=$3
trap '{ [[ ${__codeenv-} ]] || __codeenv_save; } 2>/dev/null' EXIT
__codeenv=$1
set --
{
  eval "unset __codeenv
$__codeenv"
  { __codeenv=$?; builtin set +eux; builtin trap - DEBUG ERR; __codeenv_save; } >/dev/null 2>&1
  builtin exit $__codeenv
}
"""


@dataclass(frozen=True)
class ShellResult:
    """A command's end, and where in the box the whole of its output is when it was cut ("" when it was not)."""

    exec: ExecResult
    saved_to: str
    notice: str


@dataclass(frozen=True)
class ShellState:
    """What one call hands to the next: the directory, the exported variables as `export -p` writes them, and how many
    calls there were, after which outputs are named."""

    cwd: str
    exports: str
    calls: int


class Shell:
    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._exports = ""
        self._calls = 0
        self._saved: list[tuple[str, int]] = []
        self.cwd = sandbox.workdir

    @property
    def state(self) -> ShellState:
        return ShellState(self.cwd, self._exports, self._calls)

    @state.setter
    def state(self, state: ShellState) -> None:
        self.cwd, self._exports, self._calls = state.cwd, state.exports, state.calls

    @property
    def keeps_outputs(self) -> bool:
        """Whether there are whole outputs of its commands in the box, outside the workspace."""
        return bool(self._saved)

    async def run(self, command: str, *, timeout: float) -> ShellResult:
        """Run `command` where the last one left off, for at most `timeout` seconds.

        :raises SandboxError: the box is lost. :raises ValueError: the command has a NUL character or a lone surrogate.
        """
        self._calls += 1
        encoded = command.encode()
        if b"\0" in encoded:
            raise ValueError("the command holds a NUL character")
        short = len(encoded) <= ENVIRONMENT_LIMIT
        save_to = f"{self._sandbox.scratch}/output-{self._calls}.txt"
        done = await self._sandbox.exec(
            ["bash", "-c", 'eval "$__codeenv_wrapper"'],
            cwd="/",  # the wrapper goes to the right place, and bears that there is none
            env={
                "__codeenv_wrapper": WRAPPER,
                "__codeenv_command": command if short else "",
                "__codeenv_exports": self._exports,
                "__codeenv_cwd": self.cwd,
                "__codeenv_workdir": self._sandbox.workdir,
            },
            stdin=b"" if short else encoded,
            timeout=timeout,
            save_to=save_to,
            output_limit=STATE_LIMIT,
        )
        notices = [done.notice, self._take_state(done)]
        saved_to = save_to if done.saved_bytes else ""
        if saved_to:
            await self._drop_old(save_to, done.saved_bytes)
        if done.saved_bytes < done.stdout_bytes and saved_to:
            notices.append(f"only the first {done.saved_bytes} bytes of the output are in {save_to}")
            saved_to = ""
        text = "; ".join(filter(None, notices))
        return ShellResult(replace(done, stderr=b"", stderr_bytes=0), saved_to, text)

    def _take_state(self, done: ExecResult) -> str:
        """Remember what the call left; says so where that cannot be."""
        start = done.stderr.rfind(START)
        if start < 0:  # the shell was killed or replaced: what the call before left stays
            return ""
        state, ended, _ = done.stderr[start + len(START) :].partition(END)
        directory, _, exports = state.partition(b"\0")
        self.cwd = os.fsdecode(directory) or self.cwd
        if len(exports) > ENVIRONMENT_LIMIT or done.stderr_bytes > len(done.stderr):
            return f"the exported variables are over {ENVIRONMENT_LIMIT:,} bytes: those of the call before stay"
        if ended:
            self._exports = os.fsdecode(exports)
        return ""

    async def _drop_old(self, path: str, size: int) -> None:
        self._saved.append((path, size))
        while len(self._saved) > KEPT_OUTPUTS or (
            len(self._saved) > 1 and sum(size for _, size in self._saved) > KEPT_BYTES
        ):
            try:
                await self._sandbox.remove(self._saved.pop(0)[0])
            except OSError:
                pass  # the policy has removed it
