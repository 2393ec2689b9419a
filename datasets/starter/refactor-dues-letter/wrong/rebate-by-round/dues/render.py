"""The text of the letter."""

from dues.footnotes import Footnotes
from dues.money import format_cents


def _greeting(member):
    return [f"Dear {member['name'].strip() or 'member'},", ""]


def _posting_lines(postings, footnotes):
    lines = []
    last_day = None
    for posting in sorted(postings, key=lambda p: (p.day, p.kind == "payment")):
        amount = -posting.cents if posting.kind == "payment" else posting.cents
        day = "" if posting.day == last_day else posting.day
        last_day = posting.day
        line = f"{day:>3}  {posting.kind:<8}{format_cents(amount):>12}{footnotes.mark(posting.note)}"
        lines.append(line.rstrip())
    return lines or ["  (no postings)"]


def _total_lines(totals):
    rows = [("charged", totals.charged), ("paid", -totals.paid)]
    if totals.rebate:
        rows.append(("rebate", -totals.rebate))
    return ["-" * 25] + [f"     {label:<8}{format_cents(amount):>12}" for label, amount in rows]


def _closing(totals):
    amount = format_cents(abs(totals.balance))
    if totals.balance < 0:
        return [f"You have {amount} to your credit."]
    if totals.balance == 0:
        return ["Your account is even."]
    lines = [f"Please pay {amount} by the end of the month."]
    if totals.balance > totals.charged:
        lines.append("This includes an earlier refund.")
    return lines


def render(member, postings, totals):
    footnotes = Footnotes()
    lines = _greeting(member)
    lines += _posting_lines(postings, footnotes)
    lines += _total_lines(totals)
    lines += ["", *_closing(totals)]
    foot = footnotes.lines()
    if foot:
        lines += ["", *foot]
    return "\n".join(lines) + "\n"
