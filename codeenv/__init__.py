"""codeenv: a coding environment for RL training and evaluation of language models.

`load_environment` is what verifiers looks for up to 0.3.1, `CodeTaskset` and what goes with it since then; `Episode`,
`load_tasks` and `get_provider` are the plain asyncio road. Names load when they are used: importing this package
imports no framework.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version
from typing import Any

__version__ = "0.1.0"

_NAMES = {
    "CodeEnv": "codeenv.env",
    "load_environment": "codeenv.load",
    "CodeTaskset": "codeenv.v1",
    "CodeTasksetEnv": "codeenv.v1",
    "CodeHarness": "codeenv.v1",
    "Episode": "codeenv.episode",
    "EpisodeSettings": "codeenv.episode",
    "ToolCall": "codeenv.tools",
    "Observation": "codeenv.tools",
    "Verdict": "codeenv.grading",
    "Task": "codeenv.task",
    "load_tasks": "codeenv.sources",
    "get_provider": "codeenv.sandbox",
    "SandboxSpec": "codeenv.sandbox.api",
    "open_episode": "codeenv.notebook",
    "sandbox_tools": "codeenv.toolset",
    "SandboxError": "codeenv.sandbox.api",
}

_FACES = {
    "codeenv.env": ("0.3.0", "0.3.1"),
    "codeenv.load": ("0.3.0", "0.3.1"),
    "codeenv.v1": ("0.3.1", "0.4"),
}
"""The first and the last verifiers that each is for."""


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".")[:3] if part.isdigit())


def _is_there(module: str) -> bool:
    """Whether the installed verifiers has what it is made of."""
    if module not in _FACES:
        return True
    (first, last), here = map(_numbers, _FACES[module]), _numbers(version("verifiers"))
    return first <= here and here[: len(last)] <= last


def __getattr__(name: str) -> Any:
    if name == "__all__":  # verifiers loads each of them to find what it looks for
        return [known for known, module in _NAMES.items() if _is_there(module)]
    if name not in _NAMES:
        raise AttributeError(f"module 'codeenv' has no attribute {name!r}")
    module = _NAMES[name]
    if not _is_there(module):
        others = [known for known, other in _NAMES.items() if other in _FACES and _is_there(other)]
        raise ImportError(
            f"codeenv.{name} is for verifiers {' to '.join(_FACES[module])}; {version('verifiers')} is installed, for "
            f"which there are {', '.join(others)}"
        )
    return getattr(import_module(module), name)
