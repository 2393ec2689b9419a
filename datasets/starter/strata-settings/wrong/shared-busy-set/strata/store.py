"""The stack of layers."""

from copy import deepcopy

from . import merge
from .lookup import MissingError, find
from .refs import resolve

_NO_DEFAULT = object()


class Settings:
    def __init__(self):
        self._layers: list[dict] = []
        self._merged: dict | None = None

    def push(self, layer: dict) -> None:
        self._layers.append(deepcopy(layer))
        self._merged = None

    def pop(self) -> dict:
        layer = self._layers.pop()
        self._merged = None
        return layer

    def get(self, path: str, default: object = _NO_DEFAULT) -> object:
        if self._merged is None:
            self._merged = merge.merge_layers(self._layers)
        try:
            value = find(self._merged, path)
        except MissingError:
            if default is _NO_DEFAULT:
                raise
            return default
        return resolve(self._merged, value, {path})
