"""Classes and functions of Python's own that are the same on both sides, and cross by name. Runs in both boxes."""

import builtins
import sys

PLAIN_BASES = {kind.__name__: kind for kind in (int, float, complex, str, bytes, tuple, frozenset, list, dict, set)}

FAILURES = frozenset((
    "asyncio.exceptions", "binascii", "concurrent.futures._base", "configparser", "copy", "_csv", "dataclasses",
    "decimal", "graphlib", "ipaddress", "json.decoder", "pickle", "_pickle", "queue", "_queue", "re",
    "sre_constants", "shutil", "socket", "statistics", "struct", "subprocess", "threading", "tomllib",
    "xml.etree.ElementTree",
    "zipfile", "zlib", "zoneinfo._common",
))  # fmt: skip
"""Modules of the library whose exception classes are the same on both sides. None of a test framework's."""


def failure(cls):
    """The name by which such a class crosses, else None."""
    module = cls.__module__
    if not issubclass(cls, Exception) or type(module) is not str or module not in FAILURES:
        return None
    found = getattr(sys.modules.get(module), cls.__name__, None)
    return f"{module}:{cls.__name__}" if found is cls else None


def failure_named(name):
    """:raises TypeError: there is no such exception class."""
    module, _, attribute = name.partition(":")
    if module in FAILURES:
        __import__(module)
        found = getattr(sys.modules[module], attribute, None)
        if isinstance(found, type) and issubclass(found, Exception) and failure(found) == name:
            return found
    raise TypeError(f"no such exception class: {name[:100]}")


SAFE = {
    name: getattr(builtins, name)
    for name in dir(builtins)
    if not name.startswith("_") and (isinstance(getattr(builtins, name), type) or name in (
        "abs", "all", "any", "ascii", "bin", "callable", "chr", "divmod", "format", "hash", "hex", "id", "isinstance",
        "issubclass", "iter", "len", "max", "min", "next", "oct", "ord", "pow", "print", "repr", "round", "sorted",
        "sum"))
}  # fmt: skip
"""Builtins that cross by name: types, and functions without access to anything but their arguments."""
