def _wrap(paragraph, room):
    words = paragraph.split()
    lines = []
    current = ""
    for word in words:
        if current and len(current) + 1 + len(word) <= room:
            current += " " + word
            continue
        if current:
            lines.append(current)
        while len(word) > room:
            lines.append(word[:room])
            word = word[room:]
        current = word
    if current or not words:
        lines.append(current)
    return lines


def _layout_text(text, room):
    lines = [line for paragraph in text.split("\n") for line in _wrap(paragraph, room)]
    return lines if any(lines) else []


def glossary(pairs, width, gutter=2):
    """Lay out (label, text) pairs in two columns; return the lines."""
    pairs = list(pairs)
    if not pairs:
        return []
    cap = width // 3
    column = max((len(label) for label, _ in pairs if len(label) <= cap), default=0)
    room = width - column - gutter
    if room < 1:
        raise ValueError("no room for the text column")
    indent = " " * (column + gutter)
    output = []
    for label, text in pairs:
        lines = _layout_text(text, room)
        if len(label) <= cap:
            head = label.rjust(column)
            first = lines.pop(0) if lines else ""
            if first:
                output.append(head + " " * gutter + first)
            else:
                output.append(head if label else "")
        else:
            output.append(label)
        output.extend(indent + line if line else "" for line in lines)
    return output
