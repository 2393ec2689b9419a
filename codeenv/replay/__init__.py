"""Recordings put to use: played again, gone on with, rendered anew, judged anew; and two of them compared."""

from codeenv.replay.difference import Difference
from codeenv.replay.differences import differences
from codeenv.replay.play import Replayed, fork_of, replay

__all__ = ["Difference", "Replayed", "differences", "fork_of", "replay"]
