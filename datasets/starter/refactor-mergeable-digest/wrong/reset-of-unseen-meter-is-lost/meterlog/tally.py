"""The state of a digest, mergeable with that of the lines which follow."""

from copy import deepcopy
from dataclasses import dataclass, field

from meterlog.reading import BadLine, Reset, parse_line

SHOWN_BAD_LINES = 5


@dataclass
class MeterState:
    """What is known of one meter.

    The readings before the first drop or reset form the *head*: its length in rises may still be prolonged by
    the lines that come before. `run` is the same for the end of the piece.
    """

    count: int = 0
    used: int = 0
    drops: int = 0
    best: int = 0
    run: int = 0
    previous: int | None = None
    low: int | None = None
    low_line: int | None = None
    first: int | None = None  # first reading, None if a reset comes before it or there is none
    head: int = 0  # rising readings in the head
    broken: bool = False  # the head has ended

    def reset(self):
        self.previous = None
        self.run = 0
        self.broken = True

    def add(self, value, line):
        if self.count == 0 and not self.broken:
            self.first = value
        self.count += 1
        if self.previous is None:
            self.run = 1
        elif value > self.previous:
            self.used += value - self.previous
            self.run += 1
        elif value < self.previous:
            self.drops += 1
            self.run = 1
            self.broken = True
        if not self.broken:
            self.head = self.run
        self.best = max(self.best, self.run)
        if self.low is None or value < self.low:
            self.low, self.low_line = value, line
        self.previous = value

    def follow(self, other, offset):
        """Add the state of the same meter in the lines after; these start at line `offset` + 1."""
        joined = self.previous is not None and other.first is not None
        lead = 0  # by how much the head of `other` is prolonged
        if joined:
            if other.first > self.previous:
                self.used += other.first - self.previous
                lead = self.run
            elif other.first == self.previous:
                lead = self.run - 1
            else:
                self.drops += 1
        through = not self.broken  # the head of `self` reaches the end of `self`
        self_empty = self.count == 0
        if through:
            if self_empty:
                self.first, self.head = other.first, other.head
            elif joined and other.first >= self.previous:
                self.head = lead + other.head
        head_goes_on = self_empty or not joined or other.first >= self.previous
        self.best = max(self.best, other.best, lead + other.head if joined else 0)
        if other.broken:
            self.run = other.run
        elif other.count:
            self.run = lead + other.run
        if other.broken or other.count:
            self.previous = other.previous
        self.broken = self.broken or other.broken or not head_goes_on
        self.count += other.count
        self.used += other.used
        self.drops += other.drops
        if other.low is not None and (self.low is None or other.low < self.low):
            self.low, self.low_line = other.low, other.low_line + offset


@dataclass(eq=True)
class Tally:
    lines: int = 0
    bad_count: int = 0
    bad: list = field(default_factory=list)  # (line number, reason) of the first few
    meters: dict = field(default_factory=dict)  # name -> MeterState, also for meters that were only reset
    order: list = field(default_factory=list)  # names by first reading

    def feed(self, line):
        self.lines += 1
        try:
            item = parse_line(line)
        except BadLine as error:
            self._add_bad(1, [(self.lines, error.reason)])
            return
        if item is None:
            return
        if isinstance(item, Reset):
            if item.meter in self.meters:
                self.meters[item.meter].reset()
            return
        state = self.meters.setdefault(item.meter, MeterState())
        if not state.count:
            self.order.append(item.meter)
        state.add(item.value, self.lines)

    def merge(self, other):
        if other is self:
            other = self.copy()
        offset = self.lines
        self.lines += other.lines
        self._add_bad(other.bad_count, [(line + offset, reason) for line, reason in other.bad])
        for name in other.order:
            if name not in self.meters or not self.meters[name].count:
                self.order.append(name)
        for name, state in other.meters.items():
            self.meters.setdefault(name, MeterState()).follow(state, offset)

    def copy(self):
        return deepcopy(self)

    def _add_bad(self, count, shown):
        self.bad_count += count
        self.bad += shown[: SHOWN_BAD_LINES - len(self.bad)]
