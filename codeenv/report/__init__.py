"""One HTML file that shows a run of episodes, or one episode (docs/report.md). It asks no network for anything, and all
of its content is untrusted text: see `codeenv.report.page` for what keeps it from being more."""

from codeenv.report.writing import LIMIT, Written, write_report

__all__ = ["LIMIT", "Written", "write_report"]
