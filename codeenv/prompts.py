"""How things are said: Jinja2 templates, each of which a user's own directory may replace.

A task's text is a value, never a template. A user's templates run in Jinja2's immutable sandbox.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from jinja2 import ChoiceLoader, FileSystemLoader, StrictUndefined, TemplateError, TemplateNotFound, meta
from jinja2.sandbox import ImmutableSandboxedEnvironment

from codeenv.resources import resource

TASK = (
    *("instruction", "files", "more_files", "workdir", "command_timeout"),
    *("protocol", "path", "entry_point", "code", "fence"),
)
TEMPLATES = {
    "system.j2": ("workdir", "protocol", "tools", "tool_names", "command_timeout", "max_turns", "max_test_runs"),
    **dict.fromkeys(("task.j2", "function.j2", "program.j2"), TASK),
    "answer.j2": (),
    "bash.j2": ("output", "exit_code", "timed_out", "timeout", "notice"),
    "tests.j2": ("solved", "passed", "total", "reason", "failures", "more_failures", "feedback"),
    "invalid.j2": ("fault",),
    "no_action.j2": ("protocol", "tool_names"),
}
"""Each template and the names that it is given."""


class Prompts:
    """The templates of one environment.

    :raises FileNotFoundError: `directory` is not there. :raises ValueError: it holds a file that replaces nothing, or a
        template that does not parse or uses a name that it is not given; the message names it.
    """

    def __init__(self, directory: str | Path | None = None) -> None:
        folders = [resource("prompts")]
        if directory is not None:
            own = Path(directory).expanduser()
            if not own.is_dir():
                raise FileNotFoundError(f"prompts: {own} is not a directory of templates")
            unknown = sorted(p.name for p in own.glob("*.j2") if p.name not in TEMPLATES)
            if unknown:
                raise ValueError(f"prompts: {own} has {', '.join(unknown)}; the templates are {', '.join(TEMPLATES)}")
            folders.insert(0, own)
        self._loader = ChoiceLoader([FileSystemLoader(folder) for folder in folders])
        self._environment = ImmutableSandboxedEnvironment(
            loader=self._loader,
            undefined=StrictUndefined,
            autoescape=False,
            keep_trailing_newline=False,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        builtin = cast(dict[str, Any], self._environment.globals)  # pyright: ignore[reportUnknownMemberType]
        for name, given in TEMPLATES.items():
            try:
                source, *_ = self._loader.get_source(self._environment, name)
                used = meta.find_undeclared_variables(self._environment.parse(source))
                self._environment.get_template(name)
            except TemplateNotFound as error:
                raise FileNotFoundError(f"prompts: template {name} is missing") from error
            except TemplateError as error:
                raise ValueError(f"prompts: {name}: {error}") from error
            if unknown := sorted(used.difference(given, builtin)):
                raise ValueError(f"prompts: {name} uses {', '.join(unknown)}; it is given {', '.join(given)}")

    def render(self, template: str, **values: Any) -> str:
        """:raises ValueError: the template fails on these values."""
        try:
            return self._environment.get_template(template).render(**values)
        except TemplateError as error:
            raise ValueError(f"prompts: {template}: {error}; given: {', '.join(sorted(values))}") from error


@lru_cache(maxsize=1)
def default_prompts() -> Prompts:
    return Prompts()
