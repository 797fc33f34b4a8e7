"""``sentinel demo``: composite against additive risk on the paper's Gaussian examples."""

import dataclasses
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator
from rich.table import Table
from scipy.special import betaincinv

from sentinel_rl import plotting
from sentinel_rl.cli import evaluate, train
from sentinel_rl.cli.assess import draw, first_observation, show
from sentinel_rl.cli.environments import EnvRequest
from sentinel_rl.cli.runs import read_run
from sentinel_rl.console import progress_bar, results
from sentinel_rl.plotting import ADDITIVE, COMPOSITE, NEUTRAL, TOTAL
from sentinel_rl.returns import CategoricalReturn, GaussianMixture
from sentinel_rl.risk import CVaR
from sentinel_rl.storage.atomic import writable_folder
from sentinel_rl.viewer import record, write_page

ALPHAS = (0.05, 0.1, 0.25, 0.5, 0.75, 1.0)
ALPHA = 0.25
MODELS = 64
BELIEF_MEANS = (0.7, 0.85)
CONCENTRATIONS = (2, 8, 32, 128)

ABOUT_TAILS = """\
A hundred models of one return disagree. The mean of its worst outcomes over all of them (total) has two sources: \
chance within a model, and ignorance of which model is right. Additive risk averages the models and forgives \
ignorance: it is never below the total. Composite risk looks at the worst models only.
"""
ABOUT_CHOICES = f"""\
The safe action pays N(0, 1). The uncertain one pays N(1, 1) with probability omega, else N(-1, 1), and omega is only \
known by a belief that is worth so many observations. Shown is how much better the uncertain action looks with CVaR \
{ALPHA:g}; > marks where it is taken. Composite risk waits for evidence. Additive risk does not: it likes the \
uncertain action most when it knows least.
"""


@dataclasses.dataclass(frozen=True)
class Tails:
    """The mean of the worst `ALPHAS` of a return that one of 100 Gaussian models describes."""

    total: np.ndarray
    composite: np.ndarray
    additive: np.ndarray


@dataclasses.dataclass(frozen=True)
class Choice:
    """How much better the uncertain action looks than the safe one, to three decision makers."""

    belief_mean: float
    concentration: int
    neutral: float
    additive: float
    composite: float


def show_risk(out: Path) -> None:
    """Compute both examples, print them and save the picture."""
    writable_folder(out)
    with progress_bar("two examples") as report:
        report(0, 3)
        tails = hundred_models()
        report(1, 3)
        choices = safe_or_uncertain()
        report(2, 3)
        files = _draw(tails, choices, out)
        report(3, 3)
    console = results()
    console.print(_tails_table(tails), ABOUT_TAILS, _choices_table(choices), ABOUT_CHOICES, sep="\n")
    console.print(
        f"picture: {', '.join(map(str, files))}\nnext: sentinel reproduce --list", markup=False, soft_wrap=True
    )


def show_risk_briefly() -> None:
    """Print the first example alone."""
    results().print(_tails_table(hundred_models()), ABOUT_TAILS, sep="\n")


def hundred_models(seed: int = 0) -> Tails:
    """One draw of the paper's example 1: 100 Gaussians with Dirichlet weights."""
    rng = np.random.default_rng(seed)
    weights, means = rng.dirichlet(np.full(100, 0.5)), rng.normal(size=100)
    stds = np.sqrt(1 / rng.gamma(2.0, size=100))
    with jax.enable_x64(True):
        return Tails(*map(np.asarray, _tails(means, stds, weights, np.array(ALPHAS))))


@jax.jit
def _tails(means: Array, stds: Array, weights: Array, alphas: Array) -> tuple[Array, Array, Array]:
    """Total, composite and additive CVaR for every alpha."""
    total = GaussianMixture(means, stds, weights).tail_mean(alphas)
    members = GaussianMixture.gaussian(means, stds).tail_mean(alphas[:, None])
    believed = CategoricalReturn.from_samples(members, jnp.broadcast_to(weights, members.shape))
    return total, jax.vmap(lambda alpha, law: CVaR(alpha)(law))(alphas, believed), believed.mean()


def safe_or_uncertain() -> list[Choice]:
    """The paper's example 3: what each decision maker thinks of the uncertain action, under several beliefs."""
    beliefs = [(mean, size) for mean in BELIEF_MEANS for size in CONCENTRATIONS]
    levels = (np.arange(MODELS) + 0.5) / MODELS
    omegas = np.array([betaincinv(size * mean, size * (1 - mean), levels) for mean, size in beliefs])
    with jax.enable_x64(True):
        additive, composite = map(np.asarray, _gains(omegas))
    return [
        Choice(mean, size, 2 * mean - 1, float(additive[row]), float(composite[row]))
        for row, (mean, size) in enumerate(beliefs)
    ]


@jax.jit
def _gains(omegas: Array) -> tuple[Array, Array]:
    """Additive and composite CVaR of the uncertain action, less the CVaR of the safe one; models on the last axis."""
    weights = jnp.stack([omegas, 1 - omegas], axis=-1)
    risks = GaussianMixture(np.array([1.0, -1.0]), 1.0, weights).tail_mean(ALPHA)
    gains = CategoricalReturn.from_samples(risks - GaussianMixture.gaussian(0.0, 1.0).tail_mean(ALPHA))
    return gains.mean(), CVaR(ALPHA)(gains)


def _tails_table(tails: Tails) -> Table:
    table = Table(title="100 Gaussian models: mean of the worst outcomes (higher is better)")
    for column in ("worst share", "additive", "total", "composite"):
        table.add_column(column, justify="right")
    for row, alpha in enumerate(ALPHAS):
        values = (tails.additive[row], tails.total[row], tails.composite[row])
        table.add_row(f"{alpha:g}", *(f"{value:.3f}" for value in values))
    return table


def _choices_table(choices: list[Choice]) -> Table:
    table = Table(title=f"A safe or an uncertain action? ({MODELS} models from each belief)")
    for column in ("mean of the belief", "observations", "risk-neutral", "additive", "composite"):
        table.add_column(column, justify="right")
    for choice in choices:
        gains = (choice.neutral, choice.additive, choice.composite)
        marked = (f"{'> ' if gain > 0 else ''}{gain:+.3f}" for gain in gains)
        last = choice.concentration == CONCENTRATIONS[-1]
        table.add_row(f"{choice.belief_mean:g}", f"{choice.concentration}", *marked, end_section=last)
    return table


def _draw(tails: Tails, choices: list[Choice], out: Path) -> list[Path]:
    with plotting.figure() as drawing:
        left, right = drawing.subplots(1, 2)
        for name, colour in (("additive", ADDITIVE), ("total", TOTAL), ("composite", COMPOSITE)):
            left.plot(ALPHAS, getattr(tails, name), "o-", color=colour, label=name)
        left.set(title="100 Gaussian models", xlabel="worst share α", ylabel="mean of the worst α")
        left.legend(loc="lower right")
        _draw_choices(right, [choice for choice in choices if choice.belief_mean == BELIEF_MEANS[-1]])
        return plotting.save(drawing, out / "demo")


def _draw_choices(axes: Axes, choices: list[Choice]) -> None:
    for name, label, colour in (
        ("neutral", "risk-neutral", NEUTRAL),
        ("additive", "additive", ADDITIVE),
        ("composite", "composite", COMPOSITE),
    ):
        axes.semilogx(CONCENTRATIONS, [getattr(choice, name) for choice in choices], "o-", color=colour, label=label)
    axes.axhline(0, color=plotting.BLACK, linewidth=1)
    axes.set(title=f"Uncertain action, belief mean {BELIEF_MEANS[-1]:g}", xlabel="observations behind the belief")
    axes.set(ylabel="better than the safe one by")
    axes.set_xticks(CONCENTRATIONS, labels=[f"{size}" for size in CONCENTRATIONS])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.legend(loc="lower right")


ABOUT = """\
Four networks, each trained on its own share of what was seen, tell the law of the return of every action. \
chance is what randomness in the outcome costs, ignorance what the networks' disagreement costs; \
mean - chance - ignorance = value, and the action of the highest value is taken (>).
"""
# The paper's constants make a hundredth of the updates: enough for a pole, and done within a minute.
FULL: dict[str, Any] = {"preset": "paper", "k": 4, "aleatory": "cvar:0.25", "epistemic": "cvar:0.25"}
QUICK: dict[str, Any] = FULL | {"k": 2, "hidden": (8,), "capacity": 400}


def show_agent(out: Path, quick: bool) -> None:
    """Train, evaluate, explain one decision and draw it, and write a page that shows two episodes."""
    writable_folder(out)
    place, console = out / "pole", results()
    console.print("training SENTINEL on CartPole: the pole is to be kept upright for 500 steps", soft_wrap=True)
    steps, episodes, options = (400, 10, QUICK) if quick else (100_000, 100, FULL)
    train.run("sentinel", EnvRequest("CartPole-v1"), steps, [0, 1], options, place, overwrite=True)
    evaluate.run(place, episodes, seed=1_000_000)
    agent = read_run(place).policies()[0]
    seen = first_observation(agent)
    why = agent.assess(seen)
    console.print("\nHow sure is it? The first decision of an episode:")
    show(why, seen)
    picture = draw(why, out / "decision.png")
    console.print(ABOUT, soft_wrap=False)
    page = write_page(record(agent, episodes=2, seed=7, longest=60 if quick else 250), out / "watch.html")
    console.print(
        f"picture: {picture}\nwatch it decide, in a browser: {page}\nnext: sentinel assess {place} --obs 0,0,0.1,0",
        markup=False,
        soft_wrap=True,
    )
