"""A shell that lasts for an episode and cannot be broken.

Each call is a fresh `bash`, so no command can leave a later one hanging in an open quote or a dead process; the working
directory and the exported variables are handed from one call to the next. They come back over the command's stderr, which is
free for it since the command's own output goes to stdout in order.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from codeenv.sandbox.api import OUTPUT_LIMIT, ExecResult, Sandbox

ARGUMENT_LIMIT = 90_000  # bytes; the kernel takes 131,072 in one argument
END = b"\0end\0"
KEPT_OUTPUTS = 8  # files with whole outputs that stay in the box; they share the disk with everything else

# $1 the command (or @file), $2 the exports of the call before, $3 its directory, $4 the directory to fall back to
WRAPPER = r"""
exec 9>&2 2>&1
__codeenv_save() { { printf '%s\0' "$PWD"; export -p; printf '\0end\0'; } >&9; } 2>/dev/null
if [[ $2 ]]; then unset -v $(compgen -e); eval "$2"; fi
if ! cd -- "$3" 2>/dev/null; then cd -- "$4"; echo "[the directory $3 is gone; now in $4]"; fi
case $1 in @*) __codeenv=$(<"${1#@}");; *) __codeenv=${1#=};; esac
set --
trap __codeenv_save EXIT
eval "unset __codeenv
$__codeenv"
__codeenv=$?
__codeenv_save
exit $__codeenv
"""


@dataclass(frozen=True)
class ShellResult:
    """A command's end, and where in the box the whole of its output is when it was cut ("" when it was not)."""

    exec: ExecResult
    saved_to: str
    notice: str


class Shell:
    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._exports = b""
        self._calls = 0
        self._saved: list[str] = []
        self.cwd = sandbox.workdir

    async def run(self, command: str, *, timeout: float) -> ShellResult:
        """Run `command` where the last one left off, for at most `timeout` seconds.

        :raises SandboxError: the box is lost. :raises ValueError: the command has a NUL character.
        """
        self._calls += 1
        box = self._sandbox
        encoded = command.encode()
        argument = f"={command}"
        if len(encoded) > ARGUMENT_LIMIT:
            path = f"{box.scratch}/.codeenv/command-{self._calls}"
            await box.write_file(path, encoded)
            argument = f"@{path}"
        save_to = f"{box.scratch}/output-{self._calls}.txt"
        exports = self._exports.decode("utf-8", "surrogateescape")
        done = await box.exec(
            ["bash", "-c", WRAPPER, "bash", argument, exports, self.cwd, box.workdir],
            timeout=timeout,
            save_to=save_to,
            output_limit=OUTPUT_LIMIT,
        )
        notice = self._take_state(done)
        saved_to = save_to if done.saved_bytes else ""
        if saved_to:
            await self._drop_old(saved_to)
        return ShellResult(replace(done, stderr=b"", stderr_bytes=0), saved_to, " ".join(filter(None, (done.notice, notice))))

    def _take_state(self, done: ExecResult) -> str:
        if done.stderr_bytes > len(done.stderr):
            return "the exported variables are over 64 KiB: those of the call before stay"
        end = done.stderr.rfind(END)
        if end < 0:  # the shell was killed or replaced: what the call before left stays
            return ""
        state = done.stderr[:end].rpartition(END)[2]
        directory, _, exports = state.partition(b"\0")
        kept = [line for line in exports.split(b"\ndeclare ") if not line.removeprefix(b"declare ").startswith(b"-x SHLVL=")]
        exports = b"\ndeclare ".join(kept)
        if len(exports) > ARGUMENT_LIMIT:
            return "the exported variables are over 90,000 bytes: those of the call before stay"
        self.cwd = directory.decode("utf-8", "surrogateescape") or self.cwd
        self._exports = exports
        return ""

    async def _drop_old(self, newest: str) -> None:
        self._saved.append(newest)
        while len(self._saved) > KEPT_OUTPUTS:
            try:
                await self._sandbox.remove(self._saved.pop(0))
            except OSError:
                pass  # the policy has removed it
