"""The long comparison with highway-env: thousands of episodes, decision by decision, in float64.

    python -m tests.envs.highway.differential --episodes 2000 --keep recorded        # about an hour
    python -m tests.envs.highway.differential --episodes 2000 --keep recorded        # again: seconds

The original plays at twenty decisions a second; with --keep its episodes are written to that folder, and found there
the next time. Prints a table, and every episode that differs by more than 1e-8 with what differs.
"""

import argparse
from pathlib import Path

from tests.envs.highway.compare import Difference, differences, table
from tests.envs.highway.episodes import GROUPS, LARGE, Group, load, save
from tests.envs.highway.original import Episode


def groups(episodes: int) -> dict[str, Group]:
    """The kinds of episodes: random actions for most, and a twentieth of other policies, densities and roads each."""
    part = max(episodes // 20, 1)
    chosen = {name: group._replace(count=part, first_seed=20_000) for name, group in GROUPS.items()}
    chosen["random"] = GROUPS["random"]._replace(count=episodes, first_seed=1000, stream=None)
    return chosen | {"large": LARGE._replace(count=max(part // 10, 1))}


def recorded(name: str, group: Group, keep: Path | None) -> list[Episode]:
    """The episodes of a group, from the folder if they are there."""
    path = None if keep is None else keep / f"{name}-{group.first_seed}-{group.count}.npz"
    if path is not None and path.exists():
        return load(path)[name]
    played = group.record()
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        save({name: played}, path, exact=True)
    return played


def main() -> None:
    """Record, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=2000)
    parser.add_argument("--keep", type=Path, help="folder for the episodes of the original")
    asked = parser.parse_args()
    found: dict[str, list[Difference]] = {}
    for name, group in groups(asked.episodes).items():
        played = recorded(name, group, asked.keep)
        found[name] = differences(group.twin(), [group.first(e.seed) for e in played], played)
        print(f"{name}: {len(played)} episodes", flush=True)
    print(table(found))
    for name, rows in found.items():
        for i, row in enumerate(rows):
            if not row.equal():
                seed = groups(asked.episodes)[name].first_seed + i
                worst = ", ".join(f"{key} {value:.0e}" for key, value in row.numbers.items() if value > 1e-8)
                wrong = ", ".join(f"{key} {value}" for key, value in row.flags.items() if value)
                print(f"{name}, seed {seed}: {worst or 'numbers equal'}; {wrong or 'all flags equal'}")


if __name__ == "__main__":
    main()
