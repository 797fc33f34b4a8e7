"""Recorded episodes of highway-env: which, and how a small file holds them.

    python -m tests.envs.highway.episodes        # record them anew (needs highway-env; two minutes)

Numbers are kept as multiples of 1e-9, byte by byte, which packs well and is a tenth of the tolerance of the tests; of
the observations, which follow from the cars, the last four of each episode; first states follow from the seeds.
"""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sentinel_rl.envs.highway import Highway
from tests.envs.highway.original import POLICIES, Episode, join, make, play, split
from tests.envs.highway.redraw import FirstState, redraw

FILE = Path(__file__).with_name("episodes.npz")
_UNIT = 1e-9
_SEEN = 4
_AT_THE_START = ("vehicles_density", "others_speed")


class Group(NamedTuple):
    """Episodes of one kind: the original's name and configuration, the policy, the seeds and the policy's stream."""

    name: str
    config: dict[str, Any]
    policy: str
    first_seed: int
    count: int
    stream: int | None = 1

    def twin(self) -> Highway:
        """Our environment with the same dynamics; how densely and how fast the others start is no matter of them."""
        preset = "highway-fast-v0" if self.name == "highway-fast-v0" else "highway-v0"
        return Highway.preset(preset, **{k: v for k, v in self.config.items() if k not in _AT_THE_START})

    def first(self, seed: int) -> FirstState:
        """The state that an episode starts from."""
        twin = self.twin()
        names = ("lanes_count", "vehicles_count", "ego_spacing", "initial_lane_id")
        settings = {name: getattr(twin, name) for name in names}
        settings |= {"vehicles_density": self.config.get("vehicles_density", 1)}
        return redraw(seed, settings | {"others_speed": self.config.get("others_speed")})

    def make(self) -> Any:
        """The original, with faster others by their class, which is how it can be told."""
        config = {name: value for name, value in self.config.items() if name != "others_speed"}
        faster = {"other_vehicles_type": "tests.envs.highway.faster.FasterVehicle"}
        return make(self.name, config | (faster if "others_speed" in self.config else {}))

    def record(self, count: int | None = None) -> list[Episode]:
        """Play them in the original."""
        env = self.make()
        seeds = range(self.first_seed, self.first_seed + (self.count if count is None else count))
        return [play(env, POLICIES[self.policy], seed, self.stream) for seed in seeds]


_PAPER = {"lanes_count": 5, "vehicles_count": 10}
_SMALL = {
    "lanes_count": 2,
    "vehicles_count": 4,
    "vehicles_density": 2.5,
    "policy_frequency": 3,
    "duration": 10,
    "initial_lane_id": 0,
    "offroad_terminal": True,
    "normalize_reward": False,
    "ego_spacing": 1,
}
GROUPS = {
    "random": Group("highway-v0", _PAPER, "random", 0, 80),
    "idle": Group("highway-v0", _PAPER, "idle", 500, 10),
    "dense": Group("highway-v0", _PAPER | {"vehicles_density": 2}, "sticky", 0, 60),
    "denser": Group("highway-v0", _PAPER | {"vehicles_density": 3}, "sticky", 100, 60),
    "swift": Group("highway-v0", _PAPER | {"vehicles_density": 2, "others_speed": (27.0, 30.0)}, "sticky", 200, 20),
    "fast": Group("highway-fast-v0", {"vehicles_count": 8, "vehicles_density": 2}, "sticky", 0, 40),
    "small": Group("highway-v0", _SMALL, "sticky", 0, 40),
}
# The full road of highway-v0 takes a minute to record, and a while to compile: for the longer command only.
LARGE = Group("highway-v0", {}, "sticky", 0, 6)


def save(recorded: dict[str, list[Episode]], path: Path, exact: bool = False) -> None:
    """Write groups of episodes to one file: packed, with the last observations of each, or all of it bit for bit."""
    seen = None if exact else _SEEN
    short = {
        group: [e._replace(obs=e.obs[-seen if seen else 0 :]) for e in episodes] for group, episodes in recorded.items()
    }
    columns = {f"{group}/{name}": value for group, episodes in short.items() for name, value in join(episodes).items()}
    np.savez_compressed(path, **{name: value if exact else _pack(value) for name, value in columns.items()})


def load(path: Path = FILE) -> dict[str, list[Episode]]:
    """Read groups of episodes."""
    groups: dict[str, dict[str, np.ndarray]] = {}
    with np.load(path) as file:
        for name in file.files:
            group, column = name.split("/")
            groups.setdefault(group, {})[column] = _unpack(file[name])
    return {group: split(columns) for group, columns in groups.items()}


def _pack(values: np.ndarray) -> np.ndarray:
    """Floats as whole multiples of the unit, one plane per byte; the rest in few bytes."""
    if values.dtype != np.float64:
        return values.astype(np.int8 if values.max(initial=0) < 100 else np.int32)
    whole = np.round(values / _UNIT).astype(np.int64)
    return whole.view(np.uint8).reshape(*values.shape, 8).transpose(values.ndim, *range(values.ndim)).copy()


def _unpack(stored: np.ndarray) -> np.ndarray:
    if stored.dtype != np.uint8:
        return stored
    planes = np.ascontiguousarray(stored.transpose(*range(1, stored.ndim), 0))
    return planes.view(np.int64)[..., 0] * _UNIT


if __name__ == "__main__":
    save({name: group.record() for name, group in GROUPS.items()}, FILE)
    print(f"{FILE}: {FILE.stat().st_size / 1000:.0f} kB")
