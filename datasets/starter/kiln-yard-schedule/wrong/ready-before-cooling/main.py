import sys
from dataclasses import dataclass


@dataclass
class Kiln:
    number: int
    capacity: int
    ready_at: int = 0


@dataclass(frozen=True)
class Request:
    name: str
    arrival: int
    size: int
    duration: int
    urgency: int

    def rank(self, now: int, ageing: int) -> tuple:
        """Smaller is better."""
        aged = (now - self.arrival) // ageing if ageing else 0
        return (-(self.urgency + aged), self.arrival, self.name)


class Yard:
    def __init__(self, capacities: list[int], cooling: int, ageing: int) -> None:
        self.kilns = [Kiln(number, capacity) for number, capacity in enumerate(capacities, 1)]
        self.cooling = cooling
        self.ageing = ageing
        self.waiting: dict[str, Request] = {}
        self.end = 0

    def minute(self, now: int, arrivals: list[Request], withdrawals: list[str]) -> None:
        largest = max(kiln.capacity for kiln in self.kilns)
        for request in sorted(arrivals, key=lambda r: r.name):
            if request.size > largest:
                print("REJECT", now, request.name)
            else:
                self.waiting[request.name] = request
        for name in sorted(withdrawals):
            if self.waiting.pop(name, None):
                print("GONE", now, name)
        for request in sorted(self.waiting.values(), key=lambda r: r.rank(now, self.ageing)):
            fitting = [k for k in self.kilns if k.ready_at <= now and k.capacity >= request.size]
            if fitting:
                self.start(now, request, min(fitting, key=lambda k: (k.capacity, k.ready_at, k.number)))

    def start(self, now: int, request: Request, kiln: Kiln) -> None:
        print("START", now, request.name, kiln.number)
        del self.waiting[request.name]
        ends = now + request.duration
        kiln.ready_at = ends
        self.end = max(self.end, ends)

    def next_ready(self, now: int) -> int | None:
        return min((kiln.ready_at for kiln in self.kilns if kiln.ready_at > now), default=None)


def main() -> None:
    lines = iter([line for line in sys.stdin.read().splitlines() if line.strip()])
    _, cooling, ageing = map(int, next(lines).split())
    yard = Yard([int(word) for word in next(lines).split()], cooling, ageing)

    events: dict[int, tuple[list, list]] = {}
    for _ in range(int(next(lines))):
        kind, time, name, *numbers = next(lines).split()
        arrivals, withdrawals = events.setdefault(int(time), ([], []))
        if kind == "ARRIVE":
            arrivals.append(Request(name, int(time), *map(int, numbers)))
        else:
            withdrawals.append(name)

    times = sorted(events, reverse=True)
    now = -1
    while times or yard.waiting:
        upcoming = [time for time in (yard.next_ready(now), times[-1] if times else None) if time is not None]
        now = min(upcoming)
        if times and times[-1] == now:
            times.pop()
        yard.minute(now, *events.get(now, ([], [])))
    print("END", yard.end)


if __name__ == "__main__":
    main()
