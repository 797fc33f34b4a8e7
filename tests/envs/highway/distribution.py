"""Is play in the float32 twin, from its own starts, distributed as play in highway-env?

    python -m tests.envs.highway.distribution                    # against results/highway/original.csv; ten minutes
    python -m tests.envs.highway.distribution --record 2000      # first play what is missing there (hours for all)

Two-sample tests of episode return, length, mean speed and crash rate, under random and idle actions: Kolmogorov and
Smirnov's for the first three, Fisher's exact one for crashes. There are twelve, so that Holm's p-values stand beside.

Where the two differ, three more comparisons say why: other starts that the original would draw tell whether ours are
distributed otherwise, the very same starts whether float32 drives otherwise, and how far samples of the original's
starts lie from each other tells whether this one is unusual.
"""

import argparse
import csv
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from sentinel_rl.envs.highway import Highway, HighwayState
from tests.envs.highway.compare import start
from tests.envs.highway.episodes import GROUPS, Group
from tests.envs.highway.original import POLICIES, make

RESULTS = Path(__file__).parents[3] / "results" / "highway"
FILE = RESULTS / "original.csv"
# Samples of the original by name, whose first word is the policy. The second idle one was recorded because the first
# lay far from ours; nothing but its seeds was chosen.
FIRST_SEED = {"random": 1900, "idle": 10_000, "idle again": 60_000}
_OURS = 100_000
_BLIND = {"type": "AttributesObservation", "attributes": ["time"]}


def _group(sample: str) -> Group:
    return GROUPS[sample.split()[0]]


class Summary(NamedTuple):
    """Episodes in four numbers each."""

    returns: np.ndarray
    length: np.ndarray
    speed: np.ndarray
    crashed: np.ndarray


@jax.jit
def play(env: Highway, states: HighwayState, actions: jax.Array) -> Any:
    """Reward, life, speed and crash after every action ``[steps, worlds]``; zeros after the end of an episode."""

    def step(carry, action):
        state, alive = carry
        state, after = jax.vmap(env.step, (0, 0, None))(state, action, jax.random.key(0))
        row = (after.reward * alive, alive, state.speed[:, 0] * alive, after.terminated & alive)
        return (state, alive & ~(after.terminated | after.truncated)), row

    return jax.lax.scan(step, (states, jnp.ones(actions.shape[1], bool)), actions)[1]


def total(rows: Any) -> Summary:
    """Sum up what `play` returned."""
    reward, alive, speed, crashed = jax.device_get(rows)
    length = alive.sum(0)
    return Summary(reward.sum(0), length, speed.sum(0) / length, crashed.any(0))


def twin(policy: str, episodes: int, seed: int = 0) -> Summary:
    """Episodes of the twin from its own starts, in float32."""
    env, shape = Highway.preset("highway-v1"), (40, episodes)
    states, _ = jax.jit(jax.vmap(env.reset))(jax.random.split(jax.random.key(seed), episodes))
    drawn = jax.random.randint(jax.random.key(seed + 1000), shape, 0, 5)
    return total(play(env, states, drawn if policy == "random" else jnp.ones(shape, jnp.int32)))


def same_starts(sample: str, episodes: int) -> Summary:
    """Episodes of the twin in float32 from the original's starts, with the original's actions."""
    env, group = Highway.preset("highway-v1"), _group(sample)
    seeds = range(FIRST_SEED[sample], FIRST_SEED[sample] + episodes)
    actions = np.ones((40, episodes), np.int32)
    for i, seed in enumerate(seeds):
        rng = np.random.default_rng([seed, group.stream])
        actions[:, i] = [POLICIES[group.policy](rng, 1) for _ in range(40)]
    firsts = [group.first(seed) for seed in seeds]
    return total(play(env, start(env, firsts), jnp.asarray(actions)))


def original_starts(policy: str, episodes: int) -> Summary:
    """Episodes of the twin from starts of the original, drawn again, with fresh actions: is our reset the same?"""
    env, shape = Highway.preset("highway-v1"), (40, episodes)
    firsts = [GROUPS[policy].first(seed) for seed in range(10**6, 10**6 + episodes)]
    drawn = np.random.default_rng(0).integers(5, size=shape) if policy == "random" else np.ones(shape)
    return total(play(env, start(env, firsts), jnp.asarray(drawn, jnp.int32)))


def record(episodes: int) -> None:
    """Play the episodes of the original that the file lacks, and add a row for each as soon as it is over."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    if not FILE.exists():
        FILE.write_text("sample,seed,return,length,speed,crashed\n")
    played = {sample: len(summary.returns) for sample, summary in load().items()}
    for sample, first in FIRST_SEED.items():
        # These policies see nothing, and what highway-env observes by default takes it a third of its time.
        env = make(_group(sample).name, _group(sample).config | {"observation": _BLIND})
        for seed in range(first + played[sample], first + episodes):
            total, length, speed, crashed = play_original(env, _group(sample), seed)
            with FILE.open("a") as file:
                file.write(f"{sample},{seed},{total:.5f},{length},{speed:.4f},{int(crashed)}\n")


def play_original(env: Any, group: Group, seed: int) -> tuple[float, int, float, bool]:
    """One episode of the original: return, length, the ego's mean speed after the decisions, and whether it crashed."""
    rng = np.random.default_rng([seed, group.stream])
    env.reset(seed=seed)
    rewards, speeds, over = [], [], False
    while not over:
        _, reward, crashed, truncated, _ = env.step(POLICIES[group.policy](rng, 1))
        rewards.append(reward)
        speeds.append(env.vehicle.speed)
        over = crashed or truncated
    return float(np.sum(rewards)), len(rewards), float(np.mean(speeds)), bool(crashed)


def load() -> dict[str, Summary]:
    """Read the rows again."""
    with FILE.open(newline="") as file:
        rows = list(csv.DictReader(file))
    found = {}
    for sample in FIRST_SEED:
        mine = sorted((row for row in rows if row["sample"] == sample), key=lambda row: int(row["seed"]))
        columns = (np.array([float(row[name]) for row in mine]) for name in ("return", "length", "speed", "crashed"))
        found[sample] = Summary(*columns)
    return found


def tests(original: Summary, ours: Summary) -> dict[str, float]:
    """The p-values of equal distributions; rounded, because a return that many episodes have is one value, not two."""
    pairs = {
        name: (a.astype(float).round(3), b.astype(float).round(3)) for name, (a, b) in _pairs(original, ours).items()
    }
    values = {name: float(stats.ks_2samp(*pair).pvalue) for name, pair in pairs.items()}
    crashes = [[summary.crashed.sum(), len(summary.crashed) - summary.crashed.sum()] for summary in (original, ours)]
    return values | {"crash rate": float(stats.fisher_exact(crashes).pvalue)}


def _pairs(original: Summary, ours: Summary) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    names = {"return": "returns", "length": "length", "mean speed": "speed"}
    return {name: (getattr(original, field), getattr(ours, field)) for name, field in names.items()}


def holm(values: list[float]) -> list[float]:
    """Holm's p-values: the i-th smallest of n times ``n - i``, and not below the one before it.

    Example:
        >>> holm([0.04, 0.01, 0.5])
        [0.08, 0.03, 0.5]
    """
    order, adjusted, worst = np.argsort(values), [0.0] * len(values), 0.0
    for rank, i in enumerate(order):
        worst = max(worst, min(1.0, (len(values) - rank) * values[i]))
        adjusted[i] = worst
    return adjusted


def table(pairs: dict[str, tuple[Summary, Summary]]) -> str:
    """Means with standard errors and p-values, of samples of the original and ours."""
    rows = [
        (sample, name, p, *means)
        for sample, (original, ours) in pairs.items()
        for (name, p), means in zip(tests(original, ours).items(), _means(original, ours), strict=True)
    ]
    lines = ["| actions | quantity | highway-env, float64 | twin, float32 | p | Holm |", "|" + " --- |" * 6]
    for (sample, name, p, theirs, mine), adjusted in zip(rows, holm([row[2] for row in rows]), strict=True):
        lines.append(f"| {sample} | {name} | {theirs} | {mine} | {p:.3f} | {adjusted:.3f} |")
    return "\n".join(lines)


def _means(original: Summary, ours: Summary) -> list[tuple[str, ...]]:
    columns = [*_pairs(original, ours).values(), (original.crashed * 1.0, ours.crashed * 1.0)]
    return [tuple(f"{v.mean():.4g} ± {v.std(ddof=1) / len(v) ** 0.5:.2g}" for v in pair) for pair in columns]


def scatter(original: Summary, whole: Summary) -> str:
    """How far a sample lies from others of its size, whose starts the original would draw: in standard deviations."""
    told = []
    for name, mine, theirs in zip(Summary._fields, original, whole, strict=True):
        means = theirs[: len(theirs) // len(mine) * len(mine)].reshape(-1, len(mine)).mean(1)
        unusual = (mine.mean() - means.mean()) / means.std(ddof=1)
        told.append(f"{name} {unusual:+.1f}")
    return ", ".join(told)


def main() -> None:
    """Record if asked, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", type=int, metavar="EPISODES")
    asked = parser.parse_args()
    if asked.record:
        record(asked.record)
    recorded = {sample: summary for sample, summary in load().items() if len(summary.returns)}
    ours = {policy: twin(policy, _OURS) for policy in ("random", "idle")}
    print(table({sample: (original, ours[sample.split()[0]]) for sample, original in recorded.items()}))
    counts = ", ".join(f"{sample} {len(original.returns)}" for sample, original in recorded.items())
    print(f"\nEpisodes of the twin: {_OURS} each; of highway-env: {counts}", flush=True)
    again = {policy: original_starts(policy, _OURS) for policy in ours}
    print("\nThe twin from starts of the original (drawn again bit for bit, as many) against its own:")
    for policy, own in ours.items():
        values = ", ".join(f"{name} {p:.3f}" for name, p in tests(again[policy], own).items())
        returns = " and ".join(_means(again[policy], own)[0])
        print(f"{policy}: p-values of {values}; mean returns {returns}", flush=True)
    print("\nFrom the same starts and with the same actions, float32 against float64:")
    for sample, original in recorded.items():
        replayed, count = same_starts(sample, len(original.returns)), len(original.returns)
        same = (replayed.length == original.length) & (replayed.crashed == original.crashed)
        close = same & (np.abs(replayed.returns - original.returns) < 1e-2)
        both = f"same length and end in {same.sum()} of {count} episodes, same return to 0.01 in {close.sum()}"
        print(f"{sample}: {both}", flush=True)
    print("\nMeans of a sample beside those of others as large from starts of the original, in standard deviations:")
    for sample, original in recorded.items():
        print(f"{sample}: {scatter(original, again[sample.split()[0]])}", flush=True)


if __name__ == "__main__":
    main()
