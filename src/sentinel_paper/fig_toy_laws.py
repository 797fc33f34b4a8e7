"""Figure 6: the return laws of a known MDP as SENTINEL-4 and its members learn them."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.axes import Axes

from sentinel_paper import toy_wasserstein
from sentinel_paper.claims import Claim, Finding, by_name
from sentinel_paper.fig_toy_wasserstein import NEAR, Settings
from sentinel_paper.judging import decide
from sentinel_paper.output import Page, Row, csv_text, publish
from sentinel_rl import plotting
from sentinel_rl.envs import Toy
from sentinel_rl.returns import CategoricalReturn, Support
from sentinel_rl.storage.atomic import write_file
from sentinel_rl.study import Summary, summarise

NAME = "fig-toy-laws"
SHOWN = (0, 1_000, 5_000, 10_000)
JUDGED = 5_000


@dataclasses.dataclass(frozen=True)
class Records:
    """Laws by number of transitions, and their distances to the truth.

    Args:
        settings: of the experiment.
        atoms: of the grid ``[n]``.
        true: laws on the grid ``[A, n]``.
        members: laws of the members of the first run ``[points, K, A, n]``.
        marginal: their mixture ``[points, A, n]``.
        distances: Wasserstein-1, of the mixture, ``[runs, points, A]``.
    """

    settings: Settings
    atoms: np.ndarray
    true: np.ndarray
    members: np.ndarray
    marginal: np.ndarray
    distances: np.ndarray

    def at(self, place: int, action: int) -> Summary:
        """Statistics over runs of a distance."""
        return summarise(self.distances[:, place, action], worse="high")


SETTINGS = Settings(points=SHOWN)
PAPER = by_name(
    Claim(
        "close-after-5000",
        "SENTINEL-4 estimates the laws of both actions considerably well after 5000 data points.",
        "appendix C.2",
    ),
)


def run(settings: Settings, report: Callable[[int, int], None]) -> Records:
    """Train risk-neutral SENTINEL-4, and keep the laws of the first run."""
    toy, given = Toy(), settings.toy()
    agent = toy_wasserstein.make_neutral(given)
    members, marginal, distances = [], [], []
    for done, shot in enumerate(toy_wasserstein.snapshots([(0.0, agent)], given)):
        report(done, settings.runs * len(settings.points))
        probs, mixture = map(np.asarray, laws(agent, shot.state))
        if shot.seed == settings.seed:
            members.append(probs)
            marginal.append(mixture)
        law = [CategoricalReturn(agent.support.atoms, jnp.asarray(mixture[action])) for action in range(2)]
        distances.append([float(toy.distance(action, law[action])) for action in range(2)])
    report(settings.runs * len(settings.points), settings.runs * len(settings.points))
    grid = Support(given.low, given.high, given.atoms)
    return Records(
        settings,
        np.asarray(grid.atoms),
        np.stack([np.asarray(toy.categorical(action, grid).probs) for action in range(2)]),
        np.stack(members),
        np.stack(marginal),
        np.array(distances).reshape(len(settings.points), settings.runs, 2).swapaxes(0, 1),
    )


@jax.jit
def laws(agent: Any, state: Any) -> tuple[jax.Array, jax.Array]:
    """The laws of the members in ``s0``, ``[K, A, n]``, and of their belief, ``[A, n]``."""
    belief = agent.belief(state, jnp.array([1.0, 0.0, 0.0]))
    return belief.members.probs, belief.mixture().probs


def findings(records: Records) -> list[Finding]:
    """Judge by the distances after 5000 transitions, or the last number where there are fewer."""
    points = records.settings.points
    place = points.index(JUDGED) if JUDGED in points else len(points) - 1
    told = [records.at(place, action) for action in range(2)]
    near, far = all(one.high < NEAR for one in told), any(one.low > NEAR for one in told)
    distances = " and ".join(f"{one.mean:.4f} [{one.low:.4f}, {one.high:.4f}]" for one in told)
    return [
        Finding(
            PAPER["close-after-5000"],
            f"{points[place]} transitions",
            decide(records.settings.runs, near, far),
            f"the laws of the two actions are {distances} from the true ones in Wasserstein-1 distance, over "
            f"{records.settings.runs} runs. Considerably well is taken as nearer than {NEAR}, half of what the two "
            "true laws are apart.",
            f"distances {distances}, limit {NEAR}",
        )
    ]


def render(records: Records, out: Path) -> list[Path]:
    """Write the figure, the numbers and the page."""
    points = records.settings.points
    setup = (
        "The laws of the returns of both actions: the true ones on the grid (dashed), those of the four members of one "
        "run (thin) and their mixture (thick), after so many transitions with actions drawn uniformly. The paper's "
        "figure shows one run; the table is over all runs."
    )
    words = (
        f"Over {records.settings.runs} runs the distance of the first action's law falls from "
        f"{records.at(0, 0).mean:.4f} to {records.at(len(points) - 1, 0).mean:.4f}. The two true laws are 0.025 apart "
        "and each has a single mode: the mixture is not multimodal, as its two components are closer than their spread."
    )
    page = Page(NAME, records.settings, setup, _rows(records), findings(records), words)
    with plotting.figure(14, 6) as drawing:
        grid = drawing.subplots(2, len(points), sharex=True, sharey="row", squeeze=False)
        for place in range(len(points)):
            for action in range(2):
                _draw(grid[action, place], records, place, action)
        grid[0, 0].legend(fontsize=9)
        files = publish(page, drawing, _numbers(records), out)
    return [
        *files,
        write_file(out / f"{NAME}-runs.csv", csv_text(_runs(records))),
        write_file(out / f"{NAME}-curves.csv", csv_text(curve_rows(records))),
    ]


def curve_rows(records: Records) -> list[Row]:
    """Mean and interval of the distance of each action's law after every number of transitions."""
    return [
        {"curve": "Wasserstein-1 distance", "agent": f"action {action}", "transitions": point}
        | {"mean": told.mean, "low": told.low, "high": told.high}
        for action in range(2)
        for place, point in enumerate(records.settings.points)
        for told in [records.at(place, action)]
    ]


def _draw(axes: Axes, records: Records, place: int, action: int) -> None:
    for member in records.members[place, :, action]:
        axes.plot(records.atoms, member, color=plotting.GREY, linewidth=0.8)
    axes.plot(records.atoms, records.marginal[place, action], color=plotting.ORANGE, label="mixture")
    axes.plot(records.atoms, records.true[action], "--", color=plotting.BLUE, linewidth=1.6, label="true")
    axes.set(title=f"n = {records.settings.points[place]}", ylabel=f"action {action}")


def _rows(records: Records) -> list[Row]:
    return [
        {"transitions": str(point)}
        | {
            f"action {action}": f"{told.mean:.4f} ± {told.sem:.4f} [{told.low:.4f}, {told.high:.4f}]"
            for action in range(2)
            for told in [records.at(place, action)]
        }
        for place, point in enumerate(records.settings.points)
    ]


def _runs(records: Records) -> list[Row]:
    """The distances of every single run."""
    return [
        {"seed": records.settings.seed + run, "transitions": point, "action": action}
        | {"distance": float(records.distances[run, place, action])}
        for run in range(len(records.distances))
        for place, point in enumerate(records.settings.points)
        for action in range(2)
    ]


def _numbers(records: Records) -> list[Row]:
    """The laws of the figure."""
    return [
        {"transitions": point, "action": action, "return": float(atom), "true": float(records.true[action, row])}
        | {"mixture": float(records.marginal[place, action, row])}
        | {f"member_{k + 1}": float(law[action, row]) for k, law in enumerate(records.members[place])}
        for place, point in enumerate(records.settings.points)
        for action in range(2)
        for row, atom in enumerate(records.atoms)
    ]
