"""What `openenv import` takes. It calls `load_environment()` without arguments, so they are here: choose your own.

One completion is the whole episode: its block of code is judged by the hidden tests.
"""

import verifiers as vf

import codeenv


def load_environment() -> vf.Environment:
    return codeenv.load_environment("humaneval", max_turns=1)
