import sys
from typing import NamedTuple


class Jumps(NamedTuple):
    """What a certain number of moves does, for each station: where it leads, and the sums of tolls and minutes."""

    target: list[int]
    toll: list[int]
    minutes: list[int]

    def twice(self) -> "Jumps":
        target, toll, minutes = self
        return Jumps(
            [target[there] for there in target],
            [first + toll[there] for first, there in zip(toll, target)],
            [first + minutes[there] for first, there in zip(minutes, target)],
        )


def main() -> None:
    words = list(map(int, sys.stdin.read().split()))
    count = words[0]
    plan = words[1 : 3 * count + 1]
    questions = words[3 * count + 2 :]

    limit = max(questions[1::3], default=0)  # the longest time
    levels = [Jumps([station - 1 for station in plan[::3]], plan[1::3], plan[2::3])]
    while min(levels[-1].minutes) <= limit:
        levels.append(levels[-1].twice())

    steps = [(1 << level, *jumps) for level, jumps in enumerate(levels)]
    steps.reverse()
    for here, time, purse in zip(questions[::3], questions[1::3], questions[2::3]):
        here -= 1
        moves, left, coins = 0, time, purse
        # Both sums only grow, so the moves that are possible are counted out in powers of two.
        for number, target, toll, minutes in steps:
            if minutes[here] <= left and toll[here] <= coins:
                left -= minutes[here]
                coins -= toll[here]
                moves += number
                here = target[here]
        print(here + 1, moves, time - left, coins)


if __name__ == "__main__":
    main()
