import sys
from dataclasses import dataclass, field


@dataclass
class Section:
    name: str
    items: list[tuple[str, int]] = field(default_factory=list)  # text and pence


@dataclass
class Group:
    """Lines that stay together on a page."""

    lines: list[str]
    continues: str | None = None  # the section's name, if the group is not its first
    gap: bool = False  # whether an empty line sets it off from what is above


def money(pence: int) -> str:
    pounds, rest = divmod(abs(pence), 100)
    return f"{'-' if pence < 0 else ''}{pounds:,}.{rest:02d}"


def leader(text: str, pence: int, width: int) -> str:
    amount = money(pence)
    dots = "." * (width - len(text) - len(amount) - 2)
    return f"{text} {dots} {amount}"


def wrap(words: list[str], width: int) -> list[str]:
    lines = [""]  # without the indentation

    def room() -> int:
        return width if len(lines) == 1 else width - 2

    for word in words:
        if lines[-1]:
            if len(lines[-1]) + 1 + len(word) <= room():
                lines[-1] += " " + word
                continue
            lines.append("")
        while len(word) > room():
            piece, word = word[: room()], word[room() :]
            lines[-1] = piece
            lines.append("")
        lines[-1] = word
    return lines[:1] + ["  " + line for line in lines[1:]]


def parse(lines: list[str]) -> list[Section]:
    sections = []
    for line in lines:
        words = line.split()
        if words[0] == "=":
            sections.append(Section(" ".join(words[1:])))
        else:
            qty, _, pence, *description = words
            prefix = [] if int(qty) == 1 else [str(int(qty)), "x"]
            sections[-1].items.append((prefix + description, int(qty) * int(pence)))
    return [section for section in sections if section.items]


def make_groups(sections: list[Section], width: int) -> list[Group]:
    groups = []
    for number, section in enumerate(sections):
        heading = section.name.upper()
        for position, (words, pence) in enumerate(section.items):
            *upper, last = wrap(words, width - 20)
            lines = [*upper, leader(last, pence, width)]
            if position == 0:
                groups.append(Group([heading, *lines], gap=number > 0))
            else:
                groups.append(Group(lines, continues=heading))
        subtotal = sum(pence for _, pence in section.items)
        groups[-1].lines.append(leader("Subtotal", subtotal, width))
    total = sum(pence for section in sections for _, pence in section.items)
    groups.append(Group(["=" * width, leader("Total", total, width)]))
    return groups


def paginate(groups: list[Group], height: int) -> list[list[str]]:
    pages: list[list[str]] = [[]]
    for group in groups:
        addition = [""] * group.gap + group.lines
        if len(pages[-1]) + len(group.lines) > height:
            pages.append([])
            addition = list(group.lines)
            if group.continues:
                addition.insert(0, f"{group.continues} (cont.)")
        pages[-1] += addition
    return pages


def main() -> None:
    size, title, *rest = [line for line in sys.stdin.read().splitlines() if line.strip()]
    width, height = map(int, size.split())
    title = " ".join(title.split())
    pages = paginate(make_groups(parse(rest), width), height - 3)
    for number, body in enumerate(pages, 1):
        print(" " * ((width - len(title)) // 2) + title)
        print("-" * width)
        for line in body + [""] * (height - 3 - len(body)):
            print(line)
        print(f"Page {number} of {len(pages)}".rjust(width))


if __name__ == "__main__":
    main()
