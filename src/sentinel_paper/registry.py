"""Every experiment of the paper."""

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

    def run(self, settings: Any, report: Callable[..., None], *means: Any) -> Any:
        """Compute the records; a grid reports its `GridProgress` and is given its `trained.Means`."""

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
        grid: whether it is a grid of trained agents, whose records are kept.
    """

    name: str
    title: str
    where: str
    grid: bool = True

    def load(self) -> Recipe:
        """Import the module of the experiment."""
        module = importlib.import_module(f"sentinel_paper.{self.name.replace('-', '_')}")
        return cast(Recipe, module)


EXPERIMENTS = (
    Experiment("theorems", "Coherence, and composite against additive risk", "theorems 1, 2 (section 4)", grid=False),
    Experiment("gauss-mix-cvar", "Composite, additive and total risk of a mixture", "figures 2, 8", grid=False),
    Experiment("gaussian-estimators", "Safe or uncertain action under a belief", "figure 9 (C.3)", grid=False),
    Experiment("ftrl-gaussians", "FTRL weights of three Gaussian estimators", "figure 10 (D.2)", grid=False),
    Experiment("table-highway", "Seven agents on the highway: value, tail, crashes", "table 1"),
    Experiment("fig-highway-crashes", "Crashes on the highway over training", "figure 3"),
    Experiment("fig-risk-measures", "Four compositions of risk measures on CartPole", "figure 4"),
    Experiment("fig-ftrl-lambda", "The FTRL parameter lambda on CartPole", "figure 5"),
    Experiment("table-ensemble-size", "Falls and seconds for K = 1, 2, 4, 8", "table 2 (C.1)"),
    Experiment("table-compute", "Seconds per agent on the highway", "table 4 (D.3)"),
    Experiment("fig-toy-laws", "Learned return laws of a known MDP", "figure 6 (C.2)", grid=False),
    Experiment("fig-toy-wasserstein", "Distance of learned from true laws", "figure 7 (C.2)", grid=False),
)


def find(name: str) -> Experiment:
    """Return an experiment.

    Raises:
        ValueError: for a name that is unknown; the nearest is suggested.
    """
    known = {experiment.name: experiment for experiment in EXPERIMENTS}
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise ValueError(f"unknown experiment {name!r}: {hint}There are {', '.join(known)}, and all of them with 'all'")
