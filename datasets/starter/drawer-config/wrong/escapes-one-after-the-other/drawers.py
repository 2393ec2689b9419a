"""Configuration in drawers."""

import posixpath
import re
from collections.abc import Callable, Iterator

_BLANKS = " \t"
_HEADER = re.compile(r"\[[ \t]*([^\[\]]*?)[ \t]*\]", re.DOTALL)
_SETTING = re.compile(r"([A-Za-z0-9_.-]+)[ \t]*(\+?=)(.*)", re.DOTALL)
_DIRECTIVE = re.compile(r"@(include\??|unset)[ \t]+(.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|[^u]|u|$)", re.DOTALL)
_SIMPLE = {"\\": "\\", "n": "\n", "t": "\t", "s": " "}


class ConfigError(ValueError):
    def __init__(self, message: str, file: str, line: int):
        super().__init__(f"{file}:{line}: {message}")
        self.file = file
        self.line = line


class _Problem(Exception):
    """An error whose place is known further out."""


def _physical_lines(text: str) -> list[str]:
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    if lines[-1] == "":
        lines.pop()
    return lines


def _continues(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _logical_lines(text: str, file: str) -> Iterator[tuple[int, str]]:
    lines = enumerate(_physical_lines(text), 1)
    for number, line in lines:
        if line.strip(_BLANKS)[:1] in ("", "#"):
            continue
        joined = line
        while _continues(line):
            _, line = next(lines, (0, None))
            if line is None:
                raise ConfigError("nothing follows the backslash", file, number)
            line = line.lstrip(_BLANKS)
            joined = joined[:-1] + line
        if joined := joined.strip(_BLANKS):
            yield number, joined


def _unescape(value: str) -> str:
    value = value.replace("\\n", "\n").replace("\\t", "\t").replace("\\s", " ")

    def replace(match: re.Match) -> str:
        code = match[1]
        if len(code) == 5:
            return chr(int(code[1:], 16))
        if code not in _SIMPLE:
            raise _Problem(f"unknown escape {match[0]!r}")
        return _SIMPLE[code]

    return _ESCAPE.sub(replace, value)


def _normal(path: str, directory: str) -> str:
    path = posixpath.normpath(posixpath.join("." if path.startswith("/") else directory, path.lstrip("/")))
    if path == ".." or path.startswith("../"):
        raise _Problem(f"{path} is outside of the root")
    return path


class _Loader:
    def __init__(self, read: Callable[[str], str]):
        self.read = read
        self.sections: dict[str, dict[str, str]] = {"": {}}
        self.reading: list[str] = []

    def file(self, name: str, text: str, section: str) -> None:
        self.reading.append(name)
        for number, line in _logical_lines(text, name):
            try:
                section = self.line(line, section)
            except _Problem as problem:
                raise ConfigError(str(problem), name, number) from None
        self.reading.pop()

    def line(self, line: str, section: str) -> str:
        """Obey one logical line; the result is the section that is current after it."""
        values = self.sections[section]
        if match := _HEADER.fullmatch(line):
            if not match[1]:
                raise _Problem("a section needs a name")
            self.sections.setdefault(match[1], {})
            return match[1]
        if match := _SETTING.fullmatch(line):
            key, sign, value = match.groups()
            value = _unescape(value.strip(_BLANKS))
            values[key] = f"{values[key]} {value}" if sign == "+=" and key in values else value
        elif match := _DIRECTIVE.fullmatch(line):
            word, argument = match.groups()
            if word == "unset":
                if argument not in values:
                    raise _Problem(f"there is no {argument!r} to unset")
                del values[argument]
            else:
                self.include(argument, section, optional=word.endswith("?"))
        else:
            raise _Problem("neither header, setting nor directive")
        return section

    def include(self, path: str, section: str, optional: bool) -> None:
        name = _normal(path, posixpath.dirname(self.reading[-1]))
        if name in self.reading:
            raise _Problem(f"{name} includes itself")
        try:
            text = self.read(name)
        except FileNotFoundError:
            if optional:
                return
            raise _Problem(f"there is no {name}") from None
        self.file(name, text, section)


def load(name: str, read: Callable[[str], str]) -> dict[str, dict[str, str]]:
    """The configuration in the file `name` and those it includes."""
    loader = _Loader(read)
    name = _normal(name, "")
    loader.file(name, read(name), "")
    return loader.sections
