"""Merging layers."""

from copy import deepcopy


class _Remove:
    """The type of REMOVE; copies of it are still it."""

    def __repr__(self):
        return "REMOVE"

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self


REMOVE = _Remove()


def merge_layers(layers: list[dict]) -> dict:
    """A new tree that shares nothing mutable with the layers."""
    merged = {}
    for layer in layers:
        _merge_into(merged, layer)
    return merged


def _merge_into(lower: dict, upper: dict) -> None:
    for key, value in upper.items():
        if value is REMOVE:
            lower.pop(key, None)
        elif isinstance(value, dict) and list(value) == ["$append"]:
            below = lower.get(key)
            lower[key] = [*(below if isinstance(below, list) else []), *deepcopy(value["$append"])]
        elif isinstance(value, dict):
            if not isinstance(lower.get(key), dict):
                lower[key] = {}
            _merge_into(lower[key], value)
        else:
            lower[key] = deepcopy(value)
