import sys


def main() -> None:
    words = iter(map(int, sys.stdin.read().split()))
    stations = [None]
    for _ in range(next(words)):
        stations.append((next(words), next(words), next(words)))

    rounds = {}

    def full_round(start):
        """Tolls, minutes and moves of the way round from a station."""
        if start not in rounds:
            toll = minutes = moves = 0
            here = start
            while True:
                onward, t, m = stations[here]
                toll, minutes, moves, here = toll + t, minutes + m, moves + 1, onward
                if here == start or moves == len(stations):
                    break
            rounds[start] = toll, minutes, moves
        return rounds[start]

    for _ in range(next(words)):
        here, time, purse = next(words), next(words), next(words)
        toll, minutes, length = full_round(here)
        turns = time // minutes
        if toll:
            turns = min(turns, purse // toll)
        moves, now, purse = turns * length, turns * minutes, purse - turns * toll
        while True:
            onward, t, m = stations[here]
            if t > purse or now + m > time:
                break
            here, purse, now, moves = onward, purse - t, now + m, moves + 1
        print(here, moves, now, purse)


if __name__ == "__main__":
    main()
