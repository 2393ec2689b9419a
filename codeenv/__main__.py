"""`python -m codeenv`, the same as the command `codeenv`."""

from codeenv.cli import app

app(prog_name="codeenv")
