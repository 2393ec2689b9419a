"""The report of a tally."""


def _meter_line(name, state):
    row = f"{name} n={state.count} used={state.used} rise={state.best} low={state.low}@{state.low_line}"
    if state.drops:
        row += f" drops={state.drops}"
    if state.previous is None:
        row += " (reset)"
    return row


def report(tally):
    readings = sum(state.count for state in tally.meters.values())
    out = [f"{tally.lines} lines, {readings} readings, {len(tally.order)} meters"]
    out += [_meter_line(name, tally.meters[name]) for name in tally.order]
    out += [f"bad line {number}: {reason}" for number, reason in tally.bad]
    if tally.bad_count > len(tally.bad):
        out.append(f"and {tally.bad_count - len(tally.bad)} more bad lines")
    return out
