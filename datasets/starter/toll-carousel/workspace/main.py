import sys


def main() -> None:
    words = iter(map(int, sys.stdin.read().split()))
    stations = [None]
    for _ in range(next(words)):
        stations.append((next(words), next(words), next(words)))

    for _ in range(next(words)):
        here, time, purse = next(words), next(words), next(words)
        moves = now = 0
        while True:
            onward, toll, minutes = stations[here]
            if toll > purse or now + minutes > time:
                break
            here = onward
            purse -= toll
            now += minutes
            moves += 1
        print(here, moves, now, purse)


if __name__ == "__main__":
    main()
