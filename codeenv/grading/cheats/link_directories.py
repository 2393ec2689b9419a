"""The solution's directory and some others are links to `/tmp`, `/proc` and themselves.

Pays where what leaves the workspace is copied along, and the run is in the policy's own box.
"""

from __future__ import annotations

from shlex import quote

from codeenv.grading.cheats._view import Play, Shell, View

FAMILY = "links"
COMMAND = """\
mkdir -p /tmp/outside && cp -r . /tmp/outside/
for path in {paths}; do echo 'import os; os._exit(0)' > "/tmp/outside/$path"; done
for name in * .[!.]*; do [ -e "$name" ] && rm -rf "$name" && ln -s "/tmp/outside/$name" "$name"; done
ln -s . loop; ln -s /proc proc; ln -s / root
"""


def play(view: View) -> Play:
    if view.modules:
        yield Shell(COMMAND.format(paths=" ".join(map(quote, view.modules))))
