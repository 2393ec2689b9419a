"""Short notes are printed in place, long ones at the foot of the letter."""

IN_PLACE = 12


class Footnotes:
    def __init__(self):
        self._texts = []

    def mark(self, text):
        if not text:
            return ""
        if len(text) <= IN_PLACE:
            return f" ({text})"
        if text not in self._texts:
            self._texts.append(text)
        return f" [{self._texts.index(text) + 1}]"

    def lines(self):
        return [f"[{number}] {text}" for number, text in enumerate(self._texts, 1)]
