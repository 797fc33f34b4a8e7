"""Every experiment of the paper: those that run, and those still to come."""

import dataclasses
import difflib
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, cast

from sentinel_paper.claims import Claim, Finding


class Recipe(Protocol):
    """What the module of an experiment offers; `sentinel_paper` says what each name means."""

    SETTINGS: Any
    PAPER: tuple[Claim, ...]

    def run(self, settings: Any, report: Callable[[int, int], None]) -> Any:
        """Compute the records."""

    def findings(self, records: Any) -> list[Finding]:
        """Judge the claims."""

    def render(self, records: Any, out: Path) -> list[Path]:
        """Write the files."""


@dataclasses.dataclass(frozen=True)
class Experiment:
    """A table or figure of the paper.

    Args:
        name: what ``sentinel reproduce`` calls it; its module has the same name with underscores.
        title: what it shows.
        where: its place in the paper.
        available: whether it can be run now.
    """

    name: str
    title: str
    where: str
    available: bool = False

    def load(self) -> Recipe:
        """Import the module of the experiment."""
        module = importlib.import_module(f"sentinel_paper.{self.name.replace('-', '_')}")
        return cast(Recipe, module)


EXPERIMENTS = (
    Experiment("gauss-mix-cvar", "Composite, additive and total risk of a mixture", "figures 2, 8", True),
    Experiment("gaussian-estimators", "Safe or uncertain action under a belief", "figure 9 (C.3)", True),
    Experiment("ftrl-gaussians", "FTRL weights of three Gaussian estimators", "figure 10 (D.2)", True),
    Experiment("table-highway", "Seven agents on the highway: value, tail, crashes", "table 1"),
    Experiment("fig-highway-crashes", "Crashes on the highway over training", "figure 3"),
    Experiment("fig-risk-measures", "Four compositions of risk measures on CartPole", "figure 4"),
    Experiment("fig-ftrl-lambda", "The FTRL parameter lambda on CartPole", "figure 5"),
    Experiment("table-ensemble-size", "Falls and seconds for K = 1, 2, 4, 8", "table 2 (C.1)"),
    Experiment("table-compute", "Seconds per agent on the highway", "table 4 (D.3)"),
    Experiment("fig-toy-laws", "Learned return laws of a known MDP", "figure 6 (C.2)"),
    Experiment("fig-toy-wasserstein", "Distance of learned from true laws", "figure 7 (C.2)"),
)


def available() -> tuple[Experiment, ...]:
    """The experiments that can be run now."""
    return tuple(experiment for experiment in EXPERIMENTS if experiment.available)


def find(name: str) -> Experiment:
    """Return an experiment that can be run.

    Raises:
        ValueError: for a name that is unknown (the nearest is suggested) or still to come.
    """
    known = {experiment.name: experiment for experiment in EXPERIMENTS}
    if name in known and known[name].available:
        return known[name]
    ready = ", ".join(experiment.name for experiment in available())
    if name in known:
        raise ValueError(f"{name!r} is still to come: it needs trained agents. Available now: {ready}")
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise ValueError(f"unknown experiment {name!r}: {hint}Available now: {ready}, or all of them with 'all'")
