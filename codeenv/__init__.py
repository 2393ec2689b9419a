"""codeenv: a coding environment for RL training and evaluation of language models.

`load_environment` is what verifiers looks for; `Episode`, `load_tasks` and `get_provider` are the plain asyncio road.
Names load when they are used: importing this package imports no framework.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_NAMES = {
    "CodeEnv": "codeenv.env",
    "load_environment": "codeenv.load",
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
}

__all__ = [*_NAMES]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module 'codeenv' has no attribute {name!r}")
    return getattr(import_module(_NAMES[name]), name)
