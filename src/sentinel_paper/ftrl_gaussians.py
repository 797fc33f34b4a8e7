"""Figure 10 (example 4): how FTRL weighs three Gaussian estimators, in both directions and with both signs.

Members ``N(0, 1)``, ``N(-2, 1/2)``, ``N(2, 1)`` (mean, standard deviation), marginal ``m = (1/3) sum_i f_i``, and
weights ``w_i ∝ exp(∓ lambda l_i)`` with ``l_i = KL(m || f_i)`` or ``KL(f_i || m)``. Minus prefers consensus, plus
outliers. The densities are put on a fine grid, where the sums are the integrals to many digits.
"""

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from matplotlib.axes import Axes

from sentinel_paper.claims import Claim, Finding, Verdict, by_name
from sentinel_paper.output import Page, Row, publish
from sentinel_rl import plotting
from sentinel_rl.belief import Divergence, Prefer, ftrl_losses, ftrl_weights
from sentinel_rl.returns import GaussianMixture, Support

NAME = "ftrl-gaussians"


@dataclasses.dataclass(frozen=True)
class Rule:
    """One of the four readings of the weights."""

    divergence: Divergence
    prefer: Prefer

    def __str__(self) -> str:
        """The formula of the exponent."""
        loss = {"marginal_to_member": "KL(m || f)", "member_to_marginal": "KL(f || m)"}[self.divergence]
        return f"{'−' if self.prefer == 'consensus' else '+'}λ {loss}"


RULES = (
    Rule("marginal_to_member", "outliers"),
    Rule("member_to_marginal", "outliers"),
    Rule("marginal_to_member", "consensus"),
    Rule("member_to_marginal", "consensus"),
)


@dataclasses.dataclass(frozen=True)
class Settings:
    """The paper's example; the grid is wide and fine enough for the sums to be integrals."""

    means: tuple[float, ...] = (0.0, -2.0, 2.0)
    stds: tuple[float, ...] = (1.0, 0.5, 1.0)
    lambdas: tuple[float, ...] = (0.0, 1.0, math.inf)
    grid: Support = Support(-14.0, 14.0, 5601)  # noqa: RUF009 - a frozen value


@dataclasses.dataclass(frozen=True)
class Records:
    """Losses ``[rules, members]``, weights ``[rules, lambdas, members]``, and the members' densities on the grid."""

    settings: Settings
    losses: np.ndarray
    weights: np.ndarray
    points: np.ndarray
    densities: np.ndarray


@dataclasses.dataclass(frozen=True)
class Printed:
    """The numbers the paper prints: losses, weights for lambda 1, and for lambda to infinity."""

    losses: tuple[float, ...] = (0.48, 0.92, 0.74)
    weights: tuple[float, ...] = (0.26, 0.40, 0.34)
    greedy: tuple[float, ...] = (0.0, 1.0, 0.0)


SETTINGS = Settings()
PRINTED = Printed()
PAPER = by_name(
    Claim("printed-losses", "KL(m || f_i) = [0.48, 0.92, 0.74].", "appendix D.2, example 4"),
    Claim("printed-weights", "For lambda = 1 the weights are [0.26, 0.40, 0.34].", "appendix D.2, example 4"),
    Claim("average-at-zero", "For lambda = 0 the weights are [1/3, 1/3, 1/3].", "appendix D.2, example 4"),
    Claim(
        "greedy-at-infinity",
        "For lambda to infinity w = [0, 1, 0], all on the estimator most similar to the marginal.",
        "appendix D.2, example 4",
    ),
)


def run(settings: Settings, report: Callable[[int, int], None]) -> Records:
    """Put the densities on the grid and compute losses and weights by all four rules."""
    report(0, 1)
    with jax.enable_x64(True):
        points = np.asarray(settings.grid.atoms)
        parts = _weigh(points, np.array(settings.means), np.array(settings.stds), settings.lambdas)
        losses, weights, densities = map(np.asarray, parts)
    report(1, 1)
    return Records(settings, losses, weights, points, densities)


@functools.partial(jax.jit, static_argnames="lambdas")
def _weigh(points: Array, means: Array, stds: Array, lambdas: tuple[float, ...]) -> tuple[Array, Array, Array]:
    """Losses ``[rules, members]``, weights ``[rules, lambdas, members]`` and densities ``[members, points]``."""
    log_densities = GaussianMixture.gaussian(means, stds).log_pdf(points[:, None]).T
    log_probs = jax.nn.log_softmax(log_densities, axis=-1)
    losses = [ftrl_losses(log_probs, rule.divergence) for rule in RULES]
    weights = [[ftrl_weights(log_probs, lam, rule.divergence, rule.prefer) for lam in lambdas] for rule in RULES]
    return jnp.stack(losses), jnp.array(weights), jnp.exp(log_densities)


def findings(records: Records) -> list[Finding]:
    """Judge the four sentences of the example, the second in both directions with the sign it prints."""
    weights = [_printed_weights(records, rule) for rule in RULES if rule.prefer == "outliers"]
    return [_printed_losses(records), *weights, _average(records), _greedy(records)]


def render(records: Records, out: Path) -> list[Path]:
    """Write the figure, the numbers and the page."""
    setup = (
        "Three estimators of one return, N(0, 1), N(-2, 0.5²) and N(2, 1), and their unweighted mixture m, the "
        "marginal. FTRL weighs an estimator f by exp(±λ KL), where the divergence can be taken in two directions and "
        "the sign can prefer consensus (minus) or outliers (plus). The paper names KL(m || f) and prints the plus."
    )
    page = Page(NAME, records.settings, setup, _results(records), findings(records), _words(records))
    with plotting.figure(12, 7) as drawing:
        grid = drawing.subplots(2, 3).ravel()
        _draw_members(records, grid[0])
        _draw_marginal(records, grid[1])
        _draw_weights(records, grid[2])
        for place, axes in enumerate(grid[3:]):
            _draw_mixtures(records, place, axes)
        handles, labels = grid[3].get_legend_handles_labels()
        drawing.legend(handles, labels, loc="outside lower center", ncols=len(RULES))
        return publish(page, drawing, _numbers(records), out)


def _agrees(computed: np.ndarray, printed: tuple[float, ...]) -> bool:
    """Whether numbers are those printed, to two decimals."""
    return bool(np.allclose(computed, printed, rtol=0, atol=0.00501))


def _show(values: np.ndarray, digits: int = 4) -> str:
    return "[" + ", ".join(f"{value:.{digits}f}" for value in values) + "]"


def _place(records: Records, lam: float) -> int:
    return records.settings.lambdas.index(lam)


def _printed_losses(records: Records) -> Finding:
    found = {rule.divergence: losses for rule, losses in zip(RULES, records.losses, strict=True)}
    named, other = found["marginal_to_member"], found["member_to_marginal"]
    match = "has" if _agrees(other, PRINTED.losses) else "does not have either"
    reason = (
        f"KL(m || f_i) is {_show(named)}; the other direction, KL(f_i || m) = {_show(other)}, {match} these numbers."
    )
    verdict = Verdict.of(_agrees(named, PRINTED.losses))
    return Finding(PAPER["printed-losses"], "the direction named", verdict, reason, f"{_show(named)}; exact")


def _printed_weights(records: Records, rule: Rule) -> Finding:
    weights = records.weights[RULES.index(rule), _place(records, 1.0)]
    turned = "the direction named" if rule.divergence == "marginal_to_member" else "the other direction"
    return Finding(
        PAPER["printed-weights"],
        f"{turned}, {rule}",
        Verdict.of(_agrees(weights, PRINTED.weights)),
        f"they are {_show(weights)}.",
        f"{_show(weights)}; exact",
    )


def _average(records: Records) -> Finding:
    weights = records.weights[:, _place(records, 0.0)]
    holds = bool(np.allclose(weights, 1 / weights.shape[-1]))
    return Finding(
        PAPER["average-at-zero"],
        "all four rules",
        Verdict.of(holds),
        f"the largest weight of any is {weights.max():.4f}.",
        f"largest weight {weights.max():.4f}; exact",
    )


def _greedy(records: Records) -> Finding:
    """The greedy choice must have the weight printed and be the most similar to the marginal."""
    chosen = int(np.argmax(PRINTED.greedy)) + 1
    nearest, farthest = ({int(place) + 1 for place in pick(records.losses, axis=1)} for pick in (np.argmin, np.argmax))
    role = "least" if farthest == {chosen} else "not the least"
    plus, minus = (_or(_greedy_choices(records, prefer)) for prefer in get_args(Prefer)[::-1])
    reason = (
        f"estimator {chosen} is the {role} similar to the marginal, and the most similar is number {_or(nearest)}. "
        f"The plus sign ends at estimator {plus}, the minus sign at estimator {minus}."
    )
    effect = f"the plus sign ends at estimator {plus}, most similar is {_or(nearest)}; exact"
    return Finding(PAPER["greedy-at-infinity"], "both directions", Verdict.of(nearest == {chosen}), reason, effect)


def _greedy_choices(records: Records, prefer: Prefer) -> set[int]:
    """The estimators that take all weight as lambda grows."""
    limits = records.weights[:, _place(records, math.inf)]
    return {int(np.argmax(row)) + 1 for rule, row in zip(RULES, limits, strict=True) if rule.prefer == prefer}


def _or(numbers: set[int]) -> str:
    return " or ".join(map(str, sorted(numbers)))


def _numbers(records: Records) -> list[Row]:
    return [
        {"divergence": rule.divergence, "prefer": rule.prefer, "lambda": lam, "member": member + 1}
        | {"mean": mean, "std": records.settings.stds[member], "loss": records.losses[row, member]}
        | {"weight": records.weights[row, place, member]}
        for row, rule in enumerate(RULES)
        for place, lam in enumerate(records.settings.lambdas)
        for member, mean in enumerate(records.settings.means)
    ]


def _results(records: Records) -> list[Row]:
    return [
        {"divergence": rule.divergence, "prefer": rule.prefer, "losses": _show(records.losses[row])}
        | {
            f"weights, λ = {lam:g}": _show(records.weights[row, place])
            for place, lam in enumerate(records.settings.lambdas)
        }
        for row, rule in enumerate(RULES)
    ]


def _words(records: Records) -> str:
    outlier, consensus = _or(_greedy_choices(records, "outliers")), _or(_greedy_choices(records, "consensus"))
    return (
        "The example mixes two readings. Its numbers belong to the other direction of the divergence than the one it "
        "names, and its plus sign rewards distance from the marginal while its words say the opposite. As λ grows, the "
        f"plus sign gives all weight to estimator {outlier}, the narrow one on the left; the minus sign, the consensus "
        f"that the words describe, gives all weight to estimator {consensus}, in the middle. "
        "The library's default is KL(m || f) with the minus sign; all four rules are options of `ftrl_weights`."
    )


def _draw_members(records: Records, axes: Axes) -> None:
    styles = itertools.cycle(zip((plotting.GREEN, plotting.ORANGE, plotting.PURPLE), ("-", "--", "-."), strict=True))
    for member, (density, (colour, style)) in enumerate(zip(records.densities, styles, strict=False), start=1):
        axes.plot(records.points, density, style, color=colour, label=f"estimator {member}")
    axes.legend(loc="upper right")
    _density(axes, "estimators")


def _draw_marginal(records: Records, axes: Axes) -> None:
    axes.plot(records.points, records.densities.mean(axis=0), color=plotting.BLACK)
    _density(axes, "marginal m")


def _draw_weights(records: Records, axes: Axes) -> None:
    """Bars of the weights for lambda 1."""
    places = np.arange(len(records.settings.means))
    for row, rule in enumerate(RULES):
        colour, style = _look(rule)
        face = colour if style == "-" else "white"
        heights = records.weights[row, _place(records, 1.0)]
        axes.bar(places + 0.2 * (row - 1.5), heights, 0.18, facecolor=face, edgecolor=colour, linewidth=2)
    axes.set_xticks(places, labels=[f"{place + 1}" for place in places])
    axes.set(title="weights, λ = 1", xlabel="estimator", ylabel="weight", ylim=(0, 1.02))


def _draw_mixtures(records: Records, place: int, axes: Axes) -> None:
    """The weighted mixtures for one lambda; rules that agree are drawn as one line."""
    lam, weights = records.settings.lambdas[place], records.weights[:, place]
    for row, rule in enumerate(RULES):
        colour, style = _look(rule)
        axes.plot(records.points, weights[row] @ records.densities, style, color=colour, label=str(rule))
    if np.allclose(weights, weights[0]):
        axes.plot(records.points, weights[0] @ records.densities, color=plotting.BLACK)
        axes.text(0.95, 0.92, "all four alike", transform=axes.transAxes, ha="right", va="top")
    _density(axes, "FTRL, λ → ∞" if math.isinf(lam) else f"FTRL, λ = {lam:g}")


def _look(rule: Rule) -> tuple[str, str]:
    """Colour by preference, line by direction."""
    colour = plotting.COMPOSITE if rule.prefer == "consensus" else plotting.ADDITIVE
    return colour, "-" if rule.divergence == "member_to_marginal" else "--"


def _density(axes: Axes, title: str) -> None:
    axes.set(title=title, xlabel="return", ylabel="density", xlim=(-5, 5), ylim=(0, 0.84))
