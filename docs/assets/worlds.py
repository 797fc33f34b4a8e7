"""Draw the small worlds with their optimal ways: ``python docs/assets/worlds.py`` writes worlds.png beside itself."""

from pathlib import Path

import jax
import numpy as np

from sentinel_rl import plotting
from sentinel_rl.envs import GridWorld, Optimum, best_cvar, best_mean

TITLES = {"GuardedMaze-v0": "Guarded Maze", "WindyCliff-v0": "windy cliff", "MazeGapOpen-v0": "maze, unseen room"}
PIXELS = 40


def way(world: GridWorld, optimum: Optimum) -> np.ndarray:
    """The places on the way when every step goes where it is meant to and no guard is there."""
    tables, cell, status, places = world.tables, int(world.tables.starts[0]), 0, []
    for time in range(world.max_steps):
        places.append(tables.places[cell])
        if tables.kinds[cell] == "G":
            break
        cell = int(tables.outcomes[cell, optimum.policy[time, status, cell], 0])
        status = max(status, int(tables.kinds[cell] == "g"))
    return np.array(places)


def draw(stem: Path) -> None:
    """Write the figure."""
    with plotting.figure(11.5, 4.3) as figure:
        for axes, (name, title) in zip(figure.subplots(1, 3), TITLES.items(), strict=True):
            world = GridWorld.preset(name, random_start=False)
            state, _ = world.reset(jax.random.key(0))
            axes.imshow(world.render(state))
            found = (
                ("best mean", best_mean(world), plotting.RED, -5),
                ("best CVaR .05", best_cvar(world, 0.05), plotting.COMPOSITE, 5),
            )
            for label, optimum, colour, aside in found:
                row, column = ((way(world, optimum) + 0.5) * PIXELS + aside).T
                numbers = f"{optimum.law.mean():.1f} / {optimum.law.cvar(0.05):.1f}"
                axes.plot(column, row, color=colour, lw=2.2, label=f"{label}: {numbers}")
            axes.set(title=title, xticks=[], yticks=[])
            axes.grid(False)
            axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.02), title="mean / CVaR .05", fontsize=10)
        plotting.save(figure, stem)
    stem.with_suffix(".svg").unlink()


if __name__ == "__main__":
    draw(Path(__file__).with_suffix(""))
