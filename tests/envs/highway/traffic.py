"""How hard is other traffic for drivers who learn nothing? The table of docs/highway.md.

    python -m tests.envs.highway.traffic        # a minute or two

All rows are one compiled program: how an episode begins is data.
"""

import jax
import jax.numpy as jnp

from sentinel_rl.envs.highway import Highway
from tests.envs.highway.distribution import play, total

EPISODES = 4000
DRIVERS = {"random": None, "always IDLE": 1, "always FASTER": 3, "always SLOWER": 4}
TRAFFICS = {
    "as it is (density 1, 21 to 24 m/s)": {},
    "density 2": {"vehicles_density": 2.0},
    "density 3": {"vehicles_density": 3.0},
    "24 to 27 m/s": {"others_speed": (24.0, 27.0)},
    "27 to 30 m/s": {"others_speed": (27.0, 30.0)},
    "density 2, 27 to 30 m/s": {"vehicles_density": 2.0, "others_speed": (27.0, 30.0)},
    "15 to 18 m/s": {"others_speed": (15.0, 18.0)},
}


@jax.jit
def starts(env: Highway, key: jax.Array):
    """The first states."""
    return jax.vmap(env.reset)(jax.random.split(key, EPISODES))[0]


def main() -> None:
    """Print the table: return, and share of the episodes with a crash of the ego."""
    shape = (40, EPISODES)
    drawn = jax.random.randint(jax.random.key(7), shape, 0, 5)
    print("| traffic | " + " | ".join(DRIVERS) + " |\n|" + " --- |" * (len(DRIVERS) + 1))
    for name, settings in TRAFFICS.items():
        env, cells = Highway.preset("highway-v1", **settings), []
        states = starts(env, jax.random.key(11))
        for action in DRIVERS.values():
            seen = total(play(env, states, drawn if action is None else jnp.full(shape, action, drawn.dtype)))
            cells.append(f"{seen.returns.mean():.1f}, {seen.crashed.mean():.1%}".replace("%", " %"))
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
