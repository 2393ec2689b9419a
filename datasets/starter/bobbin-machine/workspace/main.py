import sys


def main() -> None:
    source = sys.stdin.read()
    raise NotImplementedError


if __name__ == "__main__":
    main()
