"""Episodes to work in by hand, in a notebook or any other place with a running loop.

ep = await codeenv.open_episode("starter/tip-jar-payout")
await ep.bash("ls")
await ep.run_tests()
ep.close()
"""

from codeenv.notebook.episode import OpenEpisode
from codeenv.notebook.opening import open_episode
from codeenv.notebook.run import Run
from codeenv.notebook.verdicts import Verdicts

__all__ = ["OpenEpisode", "Run", "Verdicts", "open_episode"]
