"""What comes out of a training."""

import csv
import dataclasses
import functools
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sentinel_rl.agents.agent import Agent
from sentinel_rl.envs.handle import EnvHandle
from sentinel_rl.storage.atomic import write_file
from sentinel_rl.training.compiled import Best
from sentinel_rl.training.episodes import EpisodeTable
from sentinel_rl.training.metrics import Episodes


@dataclasses.dataclass(frozen=True)
class Result:
    """What came out of a training; every array has the runs on its leading axis, in the order of the seeds.

    Args:
        agents: one per seed.
        handle: the environment.
        seeds: one run each.
        steps: that were done.
        curves: learning curves by name, ``[S, points]``: ``return``, ``terminations`` (cumulative), the metrics of the
            updates and the reports of the agent; ``steps`` are the step counts of the points.
        totals: sums and means over all of training, ``[S]``: ``terminations``, ``episodes``, ``return``, ...
        table: all episodes of training.
        episodes: of the final evaluation, ``[S, E]``; None where none was asked for.
        diagnostics: of the final evaluation, means over its decisions by name, ``[S, ...]``.
        evaluations: the step counts ``[N]`` of the periodic evaluations, and their episodes ``[S, N, E]``.
        best: the best policy of every run by its periodic evaluations; None for a run that failed before the first.
        failures: why runs have failed, by seed.
        agent_states: the final state of every run's agent.
    """

    agents: list[Agent]
    handle: EnvHandle
    seeds: list[int]
    steps: int
    curves: Mapping[str, np.ndarray]
    totals: Mapping[str, np.ndarray]
    table: EpisodeTable
    episodes: Episodes | None
    diagnostics: Mapping[str, np.ndarray]
    evaluations: tuple[np.ndarray, Episodes] | None
    best: list[Best | None]
    failures: Mapping[int, str]
    agent_states: list[Any] = dataclasses.field(repr=False)

    @functools.cached_property
    def states(self) -> Any:
        """The final states of the agents, stacked on a leading axis of runs."""
        host = [jax.tree.map(_to_host, state) for state in self.agent_states]
        return jax.tree.map(lambda *leaves: jnp.stack(leaves), *host)

    @classmethod
    def join(cls, parts: "Sequence[Result]") -> "Result":
        """The results of runs one after the other as one; what a run that failed does not have is NaN."""
        if len(parts) == 1:
            return parts[0]
        tables = [part.table._replace(run=np.full_like(part.table.run, i)) for i, part in enumerate(parts)]
        played = [part.episodes for part in parts if part.episodes is not None]
        judged = any(part.best for part in parts)
        return cls(
            agents=[agent for part in parts for agent in part.agents],
            handle=parts[0].handle,
            seeds=[seed for part in parts for seed in part.seeds],
            steps=max(part.steps for part in parts),
            curves=_rows([part.curves for part in parts]),
            totals=_rows([part.totals for part in parts]),
            table=EpisodeTable.join(tables),
            episodes=_joined(played) if played else None,
            diagnostics=_rows([part.diagnostics for part in parts]),
            evaluations=_joined_evaluations(parts),
            best=[best for part in parts for best in (part.best or [None] * (judged * len(part.seeds)))],
            failures={seed: why for part in parts for seed, why in part.failures.items()},
            agent_states=[state for part in parts for state in part.agent_states],
        )

    def lines(self) -> list[dict[str, Any]]:
        """What is told of every run in one line: seed, episodes, mean return of the last 100, terminations."""
        lines = []
        for run, seed in enumerate(self.seeds):
            table = self.table.of_run(run)
            recent = float(np.mean(table.reward[-100:])) if len(table.reward) else None
            line = {"seed": seed, "episodes": len(table.reward), "return": recent}
            line["terminations"] = int(table.terminated.sum())
            lines.append(line | ({"failed": self.failures[seed]} if seed in self.failures else {}))
        return lines

    def write_curves(self, path: Path) -> Path:
        """Write the learning curves as CSV: a line per run and point, empty where there is no number."""
        text, names = io.StringIO(), [name for name in self.curves if name != "steps"]
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["seed", "step", *names])
        for run, seed in enumerate(self.seeds):
            for point, step in enumerate(self.curves["steps"]):
                values = (self.curves[name][run, point] for name in names)
                writer.writerow([seed, step, *(f"{value:.9g}" if np.isfinite(value) else "" for value in values)])
        return write_file(path, text.getvalue())


def _rows(parts: Sequence[Mapping[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Arrays of runs by name, one part after the other."""
    joined = {}
    for name in dict.fromkeys(name for part in parts for name in part):
        like = next(part[name] for part in parts if name in part)
        nothing = np.full((1, *like.shape[1:]), np.nan)
        joined[name] = like if name == "steps" else np.concatenate([part.get(name, nothing) for part in parts])
    return joined


def _joined(parts: Sequence[Episodes]) -> Episodes:
    return Episodes(*(np.concatenate(fields) for fields in zip(*parts, strict=True)))


def _joined_evaluations(parts: Sequence[Result]) -> tuple[np.ndarray, Episodes] | None:
    """The periodic evaluations of runs one after the other; those that a run did not live to see are NaN."""
    found = [part.evaluations for part in parts if part.evaluations is not None]
    if not found:
        return None
    times, longest = max(found, key=lambda each: len(each[0]))
    episodes = np.shape(longest.reward)[-1]

    def filled_up(part: Result) -> Episodes:
        count = 0 if part.evaluations is None else len(part.evaluations[0])
        missing = np.full((len(part.seeds), len(times) - count, episodes), np.nan)
        if part.evaluations is None:
            return Episodes(*[missing] * len(Episodes._fields))
        if count == len(times):
            return part.evaluations[1]
        return Episodes(*(np.concatenate([field, missing], axis=1) for field in part.evaluations[1]))

    return times, _joined([filled_up(part) for part in parts])


def _to_host(leaf: Any) -> Any:
    """Arrays in NumPy, wherever they are; keys stay on their device."""
    return leaf if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) else np.asarray(leaf)
