"""Records as if agents had been trained: all that pages and verdicts are made of, without any training."""

import dataclasses

import numpy as np

from sentinel_paper import fig_toy_laws, fig_toy_wasserstein
from sentinel_paper.output import csv_text
from sentinel_paper.registry import find
from sentinel_paper.toy_wasserstein import Distance
from sentinel_paper.trained import Execution
from sentinel_rl.study import Record

ABOUT = {
    "seconds": {"training": 3.0, "compiling": 2.0, "evaluating": 1.0, "wall": 6.0},
    "device": "cpu",
    "versions": {"jax": "0"},
    "machine": {"system": "Linux"},
    "revision": "0123456789abcdef",
    "finished": "2022-08-01T00:00:00+00:00",
    "failures": {},
}


def level(cell):
    """How often a fake agent ends its episodes: SENTINEL less with more members, others always the same."""
    seen = {"sentinel": 900 / cell.options.get("k", 4), "cdqn": 400.0, "vdqn": 700.0, "random": 4_000.0}
    return seen.get(cell.agent, 600.0)


def fake(cell):
    """The record of a cell; runs differ, and every array is there that a record has."""
    rng = np.random.default_rng(int(cell.id[:8], 16))
    runs, points, ends = len(cell.seeds), cell.points, level(cell)
    steps = np.linspace(0, cell.steps, points + 1).astype(int)[1:]
    falls = (ends * rng.uniform(0.9, 1.1, runs)).round()
    arrays = {
        "steps": steps,
        "terminations": falls,
        "episodes": falls + 100,
        "terminations_curve": falls[:, None] * np.linspace(0, 1, points + 1)[1:],
        "return_curve": rng.normal(20, 1, (runs, points)),
        "train_discounted_mean": rng.normal(20, 1, runs),
        "train_discounted_tail": rng.normal(15, 1, runs),
        "metric/loss": rng.normal(1, 0.1, (runs, points)),
    }
    for evaluation in cell.evaluations:
        stem = f"eval/{evaluation.name}"
        arrays |= {
            f"{stem}/reward": rng.normal(40 - ends / 100, 2, (runs, evaluation.episodes)),
            f"{stem}/discounted": rng.normal(30 - ends / 100, 2, (runs, evaluation.episodes)),
            f"{stem}/length": rng.integers(1, 40, (runs, evaluation.episodes)),
            f"{stem}/terminated": rng.random((runs, evaluation.episodes)) < 0.1,
            f"{stem}/lane": rng.dirichlet(np.ones(5), runs),
            f"{stem}/speed": rng.dirichlet(np.ones(10), runs),
        }
    if cell.agent == "sentinel":
        arrays |= {f"metric/{name}": rng.random((runs, points)) for name in ("epistemic", "aleatory", "clip_low")}
        arrays |= {f"choices/{name}": rng.random(runs) for name in ("additive", "neutral")}
    return Record(cell, arrays, ABOUT)


def fake_grid(cells, store, engine="local", address=None, shard=None, report=None, apart=False):
    """In the place of `run_grid`: puts fake records where there are none."""
    for cell in cells[slice(None) if shard is None else slice(shard[0] - 1, None, shard[1])]:
        if cell not in store:
            store.put(fake(cell))


def small(recipe, **changes):
    """The settings of an experiment with few runs and short curves."""
    return dataclasses.replace(recipe.SETTINGS, **{"runs": 8, "episodes": 30, "points": 5, **changes})


def grid_records(name, folder, **changes):
    """The records of an experiment, all fake; `run_grid` is replaced already."""
    recipe = find(name).load()
    return recipe.run(small(recipe, **changes), None, Execution(folder))


def toy_wasserstein_records():
    settings = dataclasses.replace(fig_toy_wasserstein.SETTINGS, runs=6, points=(0, 10))
    rng = np.random.default_rng(0)
    agents = [("sentinel", 0.0, 0.005), ("vdqn", 0.1, 0.004), ("vdqn", 0.4, 0.24)]
    distances = tuple(
        Distance(agent, noise, seed, points, action, float(end * rng.uniform(0.9, 1.1)) if points else 0.5)
        for agent, noise, end in agents
        for seed in range(6)
        for points in settings.points
        for action in range(2)
    )
    return fig_toy_wasserstein.Records(settings, distances)


def toy_laws_records():
    settings = dataclasses.replace(fig_toy_laws.SETTINGS, runs=6, points=(0, 5_000))
    rng = np.random.default_rng(0)
    members = rng.dirichlet(np.ones(11), (2, 4, 2))
    distances = rng.uniform(0.4, 0.5, (6, 2, 2))
    distances[:, 1] = rng.uniform(0.004, 0.006, (6, 2))
    atoms, true = np.linspace(0, 2, 11), rng.dirichlet(np.ones(11), 2)
    return fig_toy_laws.Records(settings, atoms, true, members, members.mean(axis=1), distances)


LEARNERS = ("neutral", "CVaR .5 o CVaR .5", "additive CVaR .25", "CVaR .25 o CVaR .25")


def write_learner(folder, agents=LEARNERS, runs=10):
    """The file of agents that learn, in a folder of results: each has fewer crashes than the one before it."""
    rng = np.random.default_rng(0)
    rows = [
        {"agent": agent, "seed": seed, "value": 32 - 0.2 * place + rng.normal(0, 0.05)}
        | {"crashes": 240 - 20 * place + rng.normal(0, 5)}
        for place, agent in enumerate(agents)
        for seed in range(runs)
    ]
    (folder / "learner").mkdir()
    (folder / "learner" / "risk.csv").write_text(csv_text(rows))
