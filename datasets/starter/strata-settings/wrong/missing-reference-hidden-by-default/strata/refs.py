"""Resolving references such as ${db.host}."""

import re
from copy import deepcopy

from .lookup import find

_REFERENCE = re.compile(r"(\$?)\$\{([^{}]*)\}")


class CycleError(ValueError):
    """A reference leads back to itself."""


def resolve(tree: dict, value: object, busy: set[str]) -> object:
    """The value with all references resolved; `busy` are the paths being resolved already."""
    if isinstance(value, dict):
        return {key: resolve(tree, item, busy) for key, item in value.items()}
    if isinstance(value, list):
        return [resolve(tree, item, busy) for item in value]
    if isinstance(value, str):
        whole = _REFERENCE.fullmatch(value)
        if whole and not whole[1]:
            return _follow(tree, whole[2], busy)
        return _REFERENCE.sub(lambda match: _text(tree, match, busy), value)
    return deepcopy(value)


def _text(tree: dict, match: re.Match, busy: set[str]) -> str:
    if match[1]:
        return match[0][1:]
    return str(_follow(tree, match[2], busy))


def _follow(tree: dict, path: str, busy: set[str]) -> object:
    if path in busy:
        raise CycleError(path)
    return resolve(tree, find(tree, path), busy | {path})
