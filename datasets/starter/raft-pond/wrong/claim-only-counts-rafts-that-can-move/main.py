import sys

STEP = {"^": (-1, 0), ">": (0, 1), "v": (1, 0), "<": (0, -1)}
TURN = {"^": ">", ">": "v", "v": "<", "<": "^"}

Cell = tuple[int, int]


class Pond:
    def __init__(self, grid: list[list[str]], rafts: dict[int, Cell]) -> None:
        self.grid = grid
        self.rafts = rafts
        self.fate: dict[int, str] = {}

    def at(self, cell: Cell) -> str | None:
        """The character at `cell`, or None outside the pond."""
        row, col = cell
        if 0 <= row < len(self.grid) and 0 <= col < len(self.grid[0]):
            return self.grid[row][col]
        return None

    def tick(self, now: int) -> None:
        leaving: dict[int, str] = {}
        wants: dict[int, Cell] = {}
        for raft, (row, col) in self.rafts.items():
            step = STEP.get(self.grid[row][col])
            if step is None:
                continue
            target = (row + step[0], col + step[1])
            kind = self.at(target)
            if kind is None:
                leaving[raft] = f"AWAY {now}"
            elif kind == "@":
                leaving[raft] = f"SUNK {now}"
            elif kind != "#":
                wants[raft] = target

        moving = self.movers(wants, leaving)
        left = [self.rafts[raft] for raft in (*moving, *leaving)]
        for raft in moving:
            self.rafts[raft] = wants[raft]
        for raft, fate in leaving.items():
            del self.rafts[raft]
            self.fate[raft] = fate
        for row, col in left:
            self.grid[row][col] = TURN[self.grid[row][col]]

    def movers(self, wants: dict[int, Cell], leaving: dict[int, str]) -> set[int]:
        occupant = {cell: raft for raft, cell in self.rafts.items()}
        moving = set(wants)
        for raft in wants:
            other = occupant.get(wants[raft])
            if other is not None and wants.get(other) == self.rafts[raft]:
                moving -= {raft, other}
        changed = True
        while changed:
            changed = False
            best: dict[Cell, int] = {}
            rings = self.rings(moving, wants, occupant)
            for raft in sorted(moving, key=lambda r: (r not in rings, r)):
                best.setdefault(wants[raft], raft)
            for raft in list(moving):
                other = occupant.get(wants[raft])
                if best[wants[raft]] != raft or (other is not None and other not in moving and other not in leaving):
                    moving.remove(raft)
                    changed = True
        return moving

    def rings(self, moving, wants, occupant):
        found = set()
        for raft in moving:
            seen, cur = [], raft
            while cur in moving and cur not in seen:
                seen.append(cur)
                cur = occupant.get(wants[cur])
            if cur == raft:
                found.add(raft)
        return found


def main() -> None:
    words = iter(sys.stdin.read().split())
    rows, _, ticks = int(next(words)), int(next(words)), int(next(words))
    grid = [list(next(words)) for _ in range(rows)]
    rafts = {}
    for _ in range(int(next(words))):
        raft = int(next(words))
        rafts[raft] = (int(next(words)), int(next(words)))

    everyone = sorted(rafts)
    pond = Pond(grid, rafts)
    for now in range(1, ticks + 1):
        pond.tick(now)

    for raft in everyone:
        if raft in pond.fate:
            print(raft, pond.fate[raft])
        else:
            print(raft, "AT", *pond.rafts[raft])
    for row in pond.grid:
        print("".join(row))


if __name__ == "__main__":
    main()
