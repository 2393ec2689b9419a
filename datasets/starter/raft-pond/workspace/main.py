import sys


def main() -> None:
    text = sys.stdin.read()
    raise NotImplementedError


if __name__ == "__main__":
    main()
