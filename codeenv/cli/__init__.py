"""The command line. One module a command; what is heavy is imported inside the commands, so that `--help` stays
quick."""

from __future__ import annotations

import typer

from codeenv.cli.audit import audit
from codeenv.cli.datasets import datasets
from codeenv.cli.doctor import doctor
from codeenv.cli.eval import evaluate
from codeenv.cli.image import app as image
from codeenv.cli.policy import policy
from codeenv.cli.regrade import regrade
from codeenv.cli.replay import replay
from codeenv.cli.report import report
from codeenv.cli.sandboxes import app as sandboxes
from codeenv.cli.serve import serve
from codeenv.cli.show import show
from codeenv.cli.validate import validate

app = typer.Typer(
    name="codeenv",
    help="A coding environment for RL: one isolated sandbox per episode, hidden tests as the score.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("eval")(evaluate)
app.command()(validate)
app.command()(audit)
app.command()(datasets)
app.command()(replay)
app.command()(regrade)
app.command()(doctor)
app.command()(policy)
app.command()(serve)
app.command()(report)
app.command()(show)
app.add_typer(sandboxes, name="sandboxes")
app.add_typer(image, name="image")
