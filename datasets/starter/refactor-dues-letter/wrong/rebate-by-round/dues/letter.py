"""The dues letter, put together from its parts."""

from dues.postings import parse_posting
from dues.render import render
from dues.totals import compute_totals


def render_letter(member, postings):
    """Return the text of the dues letter.

    member: {"name": str, "since": int, "family": bool (optional), "lang": str (optional)}
    postings: iterable of strings "day;kind;cents[;note]"
    """
    member["name"].strip()  # a bad member is reported before a bad posting
    parsed = [parse_posting(raw) for raw in postings]
    return render(member, parsed, compute_totals(member, parsed))
