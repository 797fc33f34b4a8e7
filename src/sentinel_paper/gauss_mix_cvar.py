"""Figures 2 and 8 (example 1): is composite or additive CVaR closer to the total CVaR of a mixture of Gaussians?

One run draws a belief over 100 Gaussian models, ``Phi ~ Dir(1/2)``, ``mu_i ~ N(0, 1)``, ``sigma_i^2 ~ InvGamma(2,
scale)``, and compares, in closed form, for each tail mass alpha

    total      CVaR_alpha of the mixture sum_i phi_i N(mu_i, sigma_i^2)
    composite  CVaR_alpha, over the models, of CVaR_alpha of each model
    additive   mean, over the models, of CVaR_alpha of each model
"""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from matplotlib.axes import Axes

from sentinel_paper.claims import Claim, Finding, Verdict, by_name, mostly, share_text
from sentinel_paper.output import Page, Row, publish
from sentinel_rl import plotting
from sentinel_rl.returns import CategoricalReturn, GaussianMixture
from sentinel_rl.risk import CVaR

NAME = "gauss-mix-cvar"
RESOLUTION = 1e-9  # smaller differences are rounding: at alpha = 1 all three risks are the mean
KINDS = ("additive", "total", "composite")
COLOURS = {"additive": plotting.ADDITIVE, "total": plotting.TOTAL, "composite": plotting.COMPOSITE}


@dataclasses.dataclass(frozen=True)
class Settings:
    """The paper's recipe is ``scale = 1``; with a smaller scale the spread of the means dominates."""

    runs: int = 100
    seed: int = 0
    components: int = 100
    alphas: tuple[float, ...] = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
    scales: tuple[float, ...] = (1.0, 0.3)
    batch: int = 50

    def __post_init__(self) -> None:
        if self.runs < 2:
            raise ValueError(f"runs = {self.runs} is not allowed: give at least 2, so that runs can be compared")


@dataclasses.dataclass(frozen=True)
class Records:
    """Total, composite and additive CVaR, each ``[scales, runs, alphas]``."""

    settings: Settings
    total: np.ndarray
    composite: np.ndarray
    additive: np.ndarray

    @property
    def closer(self) -> np.ndarray:
        """Number of runs in which composite is nearer to the total than additive is, ``[scales, alphas]``."""
        nearer = np.abs(self.additive - self.total) - np.abs(self.composite - self.total) > RESOLUTION
        return np.asarray(nearer.sum(axis=1))

    @property
    def underestimates(self) -> np.ndarray:
        """Number of runs in which additive shows less risk than the total has, ``[scales, alphas]``."""
        return np.asarray((self.additive - self.total > RESOLUTION).sum(axis=1))


SETTINGS = Settings()
PAPER = by_name(
    Claim(
        "additive-underestimates",
        "The additive CVaR risk strictly underestimates the total CVaR risk.",
        "section 4, example 1",
    ),
    Claim(
        "composite-closer",
        "The composite risk is closer to the total than the additive, for alpha up to 0.5.",
        "section 4, example 1",
    ),
)


def run(settings: Settings, report: Callable[[int, int], None]) -> Records:
    """Draw the runs and compute the three risks in batches of equal size."""
    weights, means, variances = (np.stack(part) for part in zip(*_draws(settings), strict=True))
    alphas, batches = np.array(settings.alphas), range(0, settings.runs, settings.batch)
    risks: list[list[tuple[np.ndarray, ...]]] = []
    for scale in settings.scales:
        risks.append([])
        for start in batches:
            report(len(risks[:-1]) * settings.runs + start, len(settings.scales) * settings.runs)
            rows = np.arange(start, start + settings.batch) % settings.runs  # the last batch is filled up
            stds = np.sqrt(scale * variances[rows])
            with jax.enable_x64(True):
                risks[-1].append(tuple(map(np.asarray, cvars(means[rows], stds, weights[rows], alphas))))
    report(len(settings.scales) * settings.runs, len(settings.scales) * settings.runs)
    joined = ([np.concatenate(kind)[: settings.runs] for kind in zip(*scale, strict=True)] for scale in risks)
    return Records(settings, *(np.stack(kind) for kind in zip(*joined, strict=True)))


@jax.jit
def cvars(means: Array, stds: Array, weights: Array, alphas: Array) -> tuple[Array, Array, Array]:
    """Total, composite and additive CVaR, each ``[runs, alphas]``, of beliefs ``[runs, components]``."""
    mixture = GaussianMixture(means[:, None], stds[:, None], weights[:, None])
    members = GaussianMixture.gaussian(means[:, None], stds[:, None]).tail_mean(alphas[:, None])
    believed = CategoricalReturn.from_samples(members, jnp.broadcast_to(weights[:, None], members.shape))
    composite = jax.vmap(lambda alpha, law: CVaR(alpha)(law), in_axes=(0, 1), out_axes=1)(alphas, believed)
    return mixture.tail_mean(alphas), composite, believed.mean()


def findings(records: Records) -> list[Finding]:
    """Judge both claims as printed and in the variant."""
    return [judge(records, place) for place in range(len(records.settings.scales)) for judge in (_strict, _nearer)]


def render(records: Records, out: Path) -> list[Path]:
    """Write the figure, the numbers and the page."""
    setup = (
        "A belief over 100 Gaussian models is drawn: weights from a Dirichlet distribution with parameter 0.5, means "
        "from N(0, 1), variances from an inverse gamma distribution with shape 2 and the scale named (the paper's is "
        "1). The CVaR is the mean of the worst share alpha of the outcomes; lower is riskier. All three risks are "
        "computed in closed form: only the models are drawn at random."
    )
    page = Page(NAME, records.settings, setup, _results(records), findings(records), _words(records))
    with plotting.figure(10, 7.4) as drawing:
        for column, axes in enumerate(drawing.subplots(2, len(records.settings.scales), sharey="row", squeeze=False).T):
            _draw_risks(records, column, axes[0])
            _draw_shares(records, column, axes[1])
        return publish(page, drawing, _numbers(records), out)


def _draws(settings: Settings) -> list[tuple[np.ndarray, ...]]:
    """Weights, means and unit-scale variances of every run; each run has a random stream of its own."""
    size = settings.components
    streams = [np.random.default_rng([settings.seed, run]) for run in range(settings.runs)]
    return [
        (rng.dirichlet(np.full(size, 0.5)), rng.normal(size=size), 1 / rng.gamma(2.0, size=size)) for rng in streams
    ]


def _setting(scale: float) -> str:
    return "as printed (scale 1)" if scale == 1 else f"with narrower models (scale {scale:g})"


def _among(counts: np.ndarray, runs: int) -> str:
    low, high = int(counts.min()), int(counts.max())
    return f"all {runs} runs" if low == runs else f"{low} to {high} of {runs} runs"


def _strict(records: Records, place: int) -> Finding:
    """Additive above total in every run, for every alpha below 1 (at 1 both are the mean)."""
    settings = records.settings
    inner = np.array(settings.alphas) < 1
    counts = records.underestimates[place, inner]
    gap = (records.additive - records.total)[place][:, inner].min()
    reason = (
        f"additive shows less risk than the total in {_among(counts, settings.runs)} for "
        f"every alpha below 1; the smallest difference in any run is {gap:.4f}. It is a theorem: CVaR is convex in "
        f"the distribution."
    )
    return Finding(
        PAPER["additive-underestimates"],
        _setting(settings.scales[place]),
        Verdict.of(bool((counts == settings.runs).all())),
        reason,
        f"additive minus total at least {gap:.4f}, in {share_text(int(counts.min()), settings.runs)} of runs",
    )


def _nearer(records: Records, place: int) -> Finding:
    """Composite nearer than additive in most runs, for every alpha up to one half."""
    settings = records.settings
    low = np.array(settings.alphas) <= 0.5
    counts = records.closer[place, low]
    below = (records.composite < records.total)[place][:, low].mean()
    miss = {kind: np.abs(getattr(records, kind) - records.total)[place][:, low].mean() for kind in KINDS}
    rare, often = (share_text(int(count), settings.runs) for count in (counts.min(), counts.max()))
    reason = (
        f"composite is closer in {_among(counts, settings.runs)}, depending on alpha: {rare} to {often}. On "
        f"average over alpha <= 0.5 it misses the total by {miss['composite']:.3f}, additive by "
        f"{miss['additive']:.3f}. Composite lies below the total, on the side of caution, in {below:.0%} of the cases."
    )
    effect = f"closer in {rare} of runs at alpha {settings.alphas[int(np.argmin(counts))]:g}, where least often"
    return Finding(
        PAPER["composite-closer"],
        _setting(settings.scales[place]),
        mostly(counts.tolist(), settings.runs),
        reason,
        effect,
    )


def _numbers(records: Records) -> list[Row]:
    """Mean and standard deviation over the runs, and the shares of runs."""
    rows: list[Row] = []
    for place, scale in enumerate(records.settings.scales):
        for column, alpha in enumerate(records.settings.alphas):
            row: dict[str, Any] = {"scale": scale, "alpha": alpha, "runs": records.settings.runs}
            for kind in KINDS:
                values = getattr(records, kind)[place, :, column]
                row |= {f"{kind}_mean": float(values.mean()), f"{kind}_sd": float(values.std(ddof=1))}
            row["share_composite_closer"] = records.closer[place, column] / records.settings.runs
            row["share_additive_underestimates"] = records.underestimates[place, column] / records.settings.runs
            rows.append(row)
    return rows


def _results(records: Records) -> list[Row]:
    """The table of the page."""
    return [
        {"scale": f"{row['scale']:g}", "alpha": f"{row['alpha']:g}"}
        | {kind: f"{row[f'{kind}_mean']:.3f} ± {row[f'{kind}_sd'] / row['runs'] ** 0.5:.3f}" for kind in KINDS}
        | {"composite closer in": "all equal" if row["alpha"] == 1 else f"{row['share_composite_closer']:.0%} of runs"}
        for row in _numbers(records)
    ]


def _words(records: Records) -> str:
    """The sum of it, from the verdicts of this run."""
    nearer = [finding for finding in findings(records) if finding.claim == PAPER["composite-closer"]]
    said = "; ".join(f"{finding.setting} it {finding.verdict}" for finding in nearer)
    return (
        "Values are means over the runs ± one standard error. Averaging over models hides the uncertainty about the "
        "model, so additive risk is always too optimistic. Composite risk errs on the other side: it takes the worst "
        "share of the models and, of each of them, again the worst share, which is a smaller and worse part of all "
        "outcomes than the worst share alone. Which error is larger depends on how the models differ. If they differ "
        "mostly in their means, composite risk is near the total; if each model is itself wide, composite risk is much "
        f"too pessimistic. Whether composite is the closer one therefore depends on how the models are drawn: {said}."
    )


def _draw_risks(records: Records, place: int, axes: Axes) -> None:
    """Means over the runs with bands of one standard deviation."""
    alphas = records.settings.alphas
    for kind in KINDS:
        values = getattr(records, kind)[place]
        mean, spread = values.mean(axis=0), values.std(axis=0, ddof=1)
        axes.fill_between(alphas, mean - spread, mean + spread, color=COLOURS[kind], alpha=0.15, linewidth=0)
        axes.plot(alphas, mean, "o-", color=COLOURS[kind], label=kind)
    axes.set_title(_setting(records.settings.scales[place]))
    axes.set_ylabel("CVaR (mean ± sd over runs)" if place == 0 else "")
    axes.legend(loc="lower right")
    _log_alphas(axes)


def _draw_shares(records: Records, place: int, axes: Axes) -> None:
    """In how many runs composite is the closer one."""
    inner = [column for column, alpha in enumerate(records.settings.alphas) if alpha < 1]
    shares = 100 * records.closer[place, inner] / records.settings.runs
    axes.plot([records.settings.alphas[column] for column in inner], shares, "o-", color=plotting.COMPOSITE)
    axes.axhline(50, color=plotting.BLACK, linewidth=1, linestyle="--")
    axes.set(ylim=(-4, 104), ylabel="composite closer (% of runs)" if place == 0 else "")
    axes.set_xlabel("worst share α")
    _log_alphas(axes)


def _log_alphas(axes: Axes) -> None:
    axes.set_xscale("log")
    ticks = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0)
    axes.set_xticks(ticks, labels=[f"{tick:g}" for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.set_xlim(0.009, 1.1)
