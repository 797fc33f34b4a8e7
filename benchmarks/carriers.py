"""What tells an agent that it has never been here? Scores of ignorance in worlds with a coverage gap.

    python benchmarks/carriers.py run --seeds 100 101 102
    python benchmarks/carriers.py show

Small agents (K = 4, networks of 64-64) learn in a world whose gap is closed. Then every score is asked at states
outside and inside the gap, and the frozen policy is played in the open world. `logged` is the maze without slipping,
learnt from 1 000 random transitions from which those that enter the room are left out: there, and only there, nothing
was ever seen of the *action* that enters the gap. Every run is a row of the file as soon as it is done, and rows that
are there are not made again.
"""

import argparse
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np
from _measure import append_row, machine, rows_of

from sentinel_paper.caution_looks import TRANSITIONS, learn_from, logged, play_in
from sentinel_rl import make_agent, train
from sentinel_rl.calibration import ignorance, separations
from sentinel_rl.envs import make_env
from sentinel_rl.envs.grid import UNSEEN
from sentinel_rl.heads import CategoricalHead
from sentinel_rl.returns import Support
from sentinel_rl.study import summarise

SCORES = ("epistemic", "disagreement", "laws", "features", "mahalanobis", "observations")
RISKS: Mapping[str, Mapping[str, str]] = {
    "composite": {"aleatory": "cvar:0.25", "epistemic": "cvar:0.25"},
    "additive": {"aleatory": "cvar:0.25", "epistemic": "expectation"},
    "neutral": {"aleatory": "expectation", "epistemic": "expectation"},
}
# Returns of the mazes lie between -1 / (1 - gamma) and 20, far within what their rewards would allow.
_MAZE = {"head": CategoricalHead(Support(-30.0, 20.0, 51)), "target_every": 50}


class World(NamedTuple):
    """A world with a gap: its names, the steps of training (or updates), and options of the agents."""

    closed: str
    opened: str
    steps: int
    settings: Mapping[str, Any]
    options: Mapping[str, Any]


WORLDS: Mapping[str, World] = {
    "maze": World("sentinel/MazeGap-v0", "sentinel/MazeGapOpen-v0", 10_000, {}, _MAZE),
    "logged": World("sentinel/MazeGap-v0", "sentinel/MazeGapOpen-v0", 4_000, {"slip": 0.0}, _MAZE),
    "pole": World("sentinel/CartPoleGap-v0", "sentinel/CartPoleGapOpen-v0", 10_000, {}, {}),
    "highway": World("sentinel/highway-gap-v0", "sentinel/highway-gap-open-v0", 20_000, {}, {"hidden": (64, 64, 128)}),
}
CARRIERS: Mapping[str, Mapping[str, Any]] = {
    "bootstrap": {},
    "mask .25": {"mask_rate": 0.25},
    "lambda 0": {"lam": 0.0},
    "K = 10": {"k": 10},
    "prior .3": {"prior_scale": 0.3},
    "prior 1": {"prior_scale": 1.0},
    "prior 3": {"prior_scale": 3.0},
    "mean .3": {"prior_scale": 0.3, "prior_on": "mean"},
    "mean 1": {"prior_scale": 1.0, "prior_on": "mean"},
    "mean 3": {"prior_scale": 3.0, "prior_on": "mean"},
    "K = 10, prior 1": {"k": 10, "prior_scale": 1.0},
    "quantiles": {"head": "quantile"},
    "quantiles, mean 3": {"head": "quantile", "prior_scale": 3.0, "prior_on": "mean"},
    "quantiles, mean 10": {"head": "quantile", "prior_scale": 10.0, "prior_on": "mean"},
}
KEYS = ("world", "carrier", "risk", "seed", "steps")
PLAYED = ("return_closed", "return_open", "entered", "inside")
COLUMNS = (*KEYS, *SCORES, *PLAYED, "seconds")
EPISODES = 200


def trained(name: str, options: Mapping[str, Any], seed: int, steps: int) -> tuple[Any, Any]:
    """An agent and its state after learning in the closed world."""
    world = WORLDS[name]
    env = make_env(world.closed, **world.settings)
    options = {"hidden": (64, 64), **world.options, **options}
    if name != "logged":
        result = train("sentinel", env, steps, [seed], reports=False, **options)
        return result.agents[0], result.agent_states[0]
    agent = make_agent("sentinel", env, capacity=TRANSITIONS, **options)
    transitions = logged(make_env(world.opened, **world.settings), seed)
    return agent, eqx.filter_jit(learn_from)(agent, env.spec, transitions, steps, jax.random.key(seed))


def judged(name: str, agent: Any, state: Any, seed: int) -> dict[str, float]:
    """AUROC of every score for the gap, and what the frozen policy does in both worlds."""
    world = WORLDS[name]
    closed, opened = (make_env(which, **world.settings) for which in (world.closed, world.opened))
    key = jax.random.key(seed + 1_000_000)
    limit = closed.spec.max_steps
    if name == "pole":
        opened_steps, epsilon = 100, 0.2
    else:
        opened_steps, epsilon = limit, 0.2
    if name in ("maze", "logged"):
        states, obs = jax.vmap(opened.reset)(jax.random.split(key, 1_000))
        cells, first = np.unique(np.asarray(states.cell), return_index=True)
        obs, gap = np.asarray(obs)[first], np.asarray([opened.tables.kinds[cell] == UNSEEN for cell in cells])
    else:
        some = play_in(agent, state, opened, epsilon, opened_steps, EPISODES, key)
        obs, gap, running = map(np.asarray, (some.obs, some.inside, some.running))
        kept = running.ravel()
        obs, gap = obs.reshape(-1, obs.shape[-1])[kept], gap.ravel()[kept]
        kept = np.random.default_rng(seed).permutation(len(obs))[:4_000]
        obs, gap = obs[kept], gap[kept]
    told = separations(
        ignorance(agent, obs[~gap], state=state),
        ignorance(agent, obs[gap], state=state),
    )
    reward = play_in(agent, state, closed, 0.0, limit, EPISODES, jax.random.fold_in(key, 1)).reward
    told["return_closed"] = float(np.asarray(reward).sum(axis=1).mean())
    seen = play_in(agent, state, opened, 0.0, limit, EPISODES, jax.random.fold_in(key, 2))
    reward, inside, entered, running = map(np.asarray, (seen.reward, seen.inside, seen.entered, seen.running))
    outside = ~inside[:, 0]  # episodes that start in the gap did not enter it
    told["return_open"] = float(reward.sum(axis=1).mean())
    told["entered"] = float(entered[outside].any(axis=1).mean())
    told["inside"] = float(inside.sum() / running.sum())
    return told


def run(given: argparse.Namespace) -> None:
    """Make the runs that the file does not have."""
    print(machine("jax"), flush=True)
    for name in given.worlds:
        for carrier in given.carriers:
            for risk in given.risks:
                for seed in given.seeds:
                    steps = given.steps or WORLDS[name].steps
                    here = (name, carrier, risk, str(seed), str(steps))
                    if any(tuple(row[column] for column in KEYS) == here for row in rows_of(given.out)):
                        continue
                    began = time.perf_counter()
                    agent, state = trained(name, {**CARRIERS[carrier], **RISKS[risk]}, seed, steps)
                    told = judged(name, agent, state, seed)
                    seconds = f"{time.perf_counter() - began:.0f}"
                    figures = [f"{told[column]:.4f}" for column in (*SCORES, *PLAYED)]
                    print(*here, *figures, seconds, flush=True)
                    append_row(given.out, COLUMNS, (*here, *figures, seconds))


def show(given: argparse.Namespace) -> None:
    """Print means over the seeds as tables: AUROC of every score, and what the policies do."""
    rows = rows_of(given.out)
    for name in WORLDS:
        here = [row for row in rows if row["world"] == name]
        if not here:
            continue
        print(f"\n{name}, {here[0]['steps']} steps\n")
        print("| carrier | risk | runs | " + " | ".join((*SCORES, *PLAYED)) + " |")
        print("| --- | --- |" + " ---: |" * (1 + len(SCORES) + len(PLAYED)))
        for carrier, risk in dict.fromkeys((row["carrier"], row["risk"]) for row in here):
            runs = [row for row in here if (row["carrier"], row["risk"]) == (carrier, risk)]
            cells = [_cell(runs, column, 2) for column in SCORES]
            cells += [_cell(runs, column, 1 if column.startswith("return") else 2) for column in PLAYED]
            print(f"| {carrier} | {risk} | {len(runs)} | " + " | ".join(cells) + " |")


def _cell(runs: list[dict[str, str]], column: str, digits: int) -> str:
    values = np.array([float(row[column]) for row in runs])
    if len(values) < 2:
        return f"{values.mean():.{digits}f}"
    told = summarise(values)
    return f"{told.mean:.{digits}f} [{told.low:.{digits}f}, {told.high:.{digits}f}]"


def main() -> None:
    """Run or show."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("run", "show"))
    parser.add_argument("--worlds", nargs="*", choices=WORLDS, default=["maze", "logged", "pole"])
    parser.add_argument("--carriers", nargs="*", choices=CARRIERS, default=list(CARRIERS))
    parser.add_argument("--risks", nargs="*", choices=RISKS, default=["composite"])
    parser.add_argument("--seeds", nargs="*", type=int, default=[100, 101, 102])
    parser.add_argument("--steps", type=int, help="of training, other than the table's")
    parser.add_argument("--out", type=Path, default=Path("results/carriers/tuning.csv"))
    given = parser.parse_args()
    (run if given.command == "run" else show)(given)


if __name__ == "__main__":
    main()
