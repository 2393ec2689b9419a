"""The environment variables of a box. A backend adds a spec's own; nothing of the host's ever comes in."""

from collections.abc import Mapping

HOME = "/tmp/home"
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

# Nobody sits at this terminal: whatever would page, prompt or open an editor must end by itself.
UNATTENDED = {
    "TERM": "dumb",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "MANPAGER": "cat",
    "EDITOR": "true",
    "VISUAL": "true",
    "GIT_EDITOR": "true",
    "GIT_TERMINAL_PROMPT": "0",
    "DEBIAN_FRONTEND": "noninteractive",
    "PIP_NO_INPUT": "1",
    "NO_COLOR": "1",
}


def box_environment(path_first: str = "", extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Variables of every command in a box; `path_first` is a directory to search before the system's."""
    path = f"{path_first}:{SYSTEM_PATH}" if path_first else SYSTEM_PATH
    return {
        "PATH": path,
        "HOME": HOME,
        "USER": "user",
        "LOGNAME": "user",
        "SHELL": "/bin/bash",
        "LANG": "C.UTF-8",
        "TMPDIR": "/tmp",
        "PYTHONDONTWRITEBYTECODE": "1",
        **UNATTENDED,
        **(extra or {}),
    }
