"""The stack of layers."""

from . import merge
from .lookup import MissingError, find
from .refs import resolve

_NO_DEFAULT = object()


class Settings:
    def __init__(self):
        self._layers: list[dict] = []
        self._merged: dict | None = None

    def push(self, layer: dict) -> None:
        self._layers.append(layer)
        self._merged = None

    def pop(self) -> dict:
        return self._layers.pop()

    def get(self, path: str, default: object = _NO_DEFAULT) -> object:
        if self._merged is None:
            self._merged = merge.merge_layers(self._layers)
        try:
            value = find(self._merged, path)
            return resolve(self._merged, value, {path})
        except MissingError:
            if default is _NO_DEFAULT:
                raise
            return default
