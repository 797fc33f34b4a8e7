"""Gradients by atoms, probabilities and parameters: right at regular points, finite at the others."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sentinel_rl.belief import Belief
from sentinel_rl.returns import CategoricalReturn
from sentinel_rl.risk import (
    CPW,
    BestCase,
    Composite,
    CVaR,
    DualPower,
    Entropic,
    EVaR,
    Expectation,
    MeanSemideviation,
    MeanStd,
    MeanVariance,
    MinMaxVar,
    ProportionalHazard,
    VaR,
    Wang,
    WorstCase,
)

COMPILE_QUICKLY = True

# Every class at the ends of its range and between; each row of parameters is mapped over.
NASTY = [
    (Expectation, []),
    (WorstCase, []),
    (BestCase, []),
    (CVaR, [[1e-6, 0.25, 1.0]]),
    (VaR, [[1e-6, 0.25, 1.0]]),
    (Wang, [[1e-6, 0.5, 1 - 1e-6]]),
    (ProportionalHazard, [[1e-3, 0.5, 1.0]]),
    (DualPower, [[1.0, 3.0, 1e3]]),
    (MinMaxVar, [[0.0, 0.5, 1e2]]),
    (CPW, [[0.3, 0.7, 1.0]]),
    (EVaR, [[1e-6, 0.25, 1.0]]),
    (Entropic, [[0.0, 1e-8, 1e3]]),
    (Entropic, [[-1e-8, -1.0, -1e3]]),
    (MeanStd, [[0.0, 1.0, 10.0]]),
    (MeanVariance, [[0.0, 1.0, 10.0]]),
    (MeanSemideviation, [[0.0, 1.0, 1.0], [1.0, 1.0, 10.0]]),
]
NASTY_LAWS = {
    "point mass below": ([0, 1, 2, 3], [1, 0, 0, 0]),
    "point mass between": ([0, 1, 2, 3], [0, 1, 0, 0]),
    "point mass above": ([0, 1, 2, 3], [0, 0, 0, 1]),
    "nothing at the ends": ([0, 1, 2, 3], [0, 0.5, 0.5, 0]),
    "only the ends": ([0, 1, 2, 3], [0.5, 0, 0, 0.5]),
    "level on a step": ([0, 1, 2, 3], [0.25, 0.25, 0.25, 0.25]),
    "one value": ([2, 2, 2, 2], [0.25, 0.25, 0.25, 0.25]),
    "ties": ([0, 0, 3, 3], [0.1, 0.15, 0.25, 0.5]),
    "wide": ([-1000, 0, 0, 1000], [0.25, 0.25, 0.25, 0.25]),
    "nearly impossible": ([0, 1, 2, 3], [1e-30, 0.5, 0.5, 1e-30]),
}


every_class = pytest.mark.parametrize(
    ("cls", "columns"), NASTY, ids=[f"{cls.__name__}-{i}" for i, (cls, _) in enumerate(NASTY)]
)


@cache
def compiled(cls, mapped):
    """Value and slopes by parameters, atoms and probabilities, for each of the parameters and each of the laws."""

    def value(parameters, atoms, probs):
        return cls(*parameters)(CategoricalReturn(atoms, probs))

    over_laws = jax.vmap(jax.value_and_grad(value, argnums=(0, 1, 2)), in_axes=(None, 0, 0))
    return jax.jit(jax.vmap(over_laws, in_axes=(0, None, None)) if mapped else over_laws)


@every_class
def test_values_and_slopes_are_finite_everywhere(cls, columns, precision):
    atoms, probs = (np.array(part, precision) for part in zip(*NASTY_LAWS.values(), strict=True))
    if precision == "float64":  # more than eight atoms take another path
        atoms, probs = np.pad(atoms, [(0, 0), (0, 5)], mode="edge"), np.pad(probs, [(0, 0), (0, 5)])
    parameters = tuple(np.array(column, precision) for column in columns)
    for leaf in jax.tree.leaves(compiled(cls, bool(columns))(parameters, atoms, probs)):
        bad = np.argwhere(~np.isfinite(leaf))
        assert not len(bad), [list(NASTY_LAWS)[index[1 if columns else 0]] for index in bad]


# A regular point: no ties, no zeros, no level on a step, no parameter at an end.
POINT = np.array([-2, -1, -0.5, 0.2, 0.3, 0.7, 1, 2, 4]), np.array([9, 11, 8, 13, 17, 15, 12, 8, 7]) / 100
REGULAR = {
    CVaR: [0.23],
    VaR: [0.23],
    Wang: [0.23],
    EVaR: [0.23],
    ProportionalHazard: [0.6],
    DualPower: [2.5],
    MinMaxVar: [0.7],
    CPW: [0.7],
    Entropic: [0.8],
    MeanStd: [0.8],
    MeanVariance: [0.8],
    MeanSemideviation: [0.7, 2.5],
}
STEP = 1e-6
BY_ATOM = STEP * np.concatenate([np.eye(9)[::2], -np.eye(9)[::2]])  # every second atom up, then down
BY_MOVED_PROBABILITY = BY_ATOM - np.roll(BY_ATOM, 1, axis=1)  # from one atom to the next: they still sum to one
STAY = np.zeros_like(BY_ATOM)


@pytest.mark.parametrize(("cls", "columns"), NASTY[:12] + NASTY[13:], ids=lambda v: getattr(v, "__name__", ""))
def test_slopes_are_finite_differences_at_a_regular_point(cls, columns, x64):
    point = np.array(REGULAR.get(cls, []))

    def at(parameters, atoms_by, probs_by):
        """Value and slopes at ten neighbours of the point."""
        found = compiled(cls, bool(columns))(
            tuple(np.full(3, p) for p in parameters), POINT[0] + atoms_by, POINT[1] + probs_by
        )
        return jax.tree.map(lambda leaf: np.asarray(leaf)[0] if columns else np.asarray(leaf), found)

    def check(differences, slopes):
        np.testing.assert_allclose(np.divide(differences, 2 * STEP), slopes, rtol=1e-6, atol=1e-8)

    _, (by_parameters, by_atoms, by_probs) = at(point, STAY, STAY)
    value, _ = at(point, BY_ATOM, STAY)
    check(value[:5] - value[5:], by_atoms[0, ::2])
    value, _ = at(point, STAY, BY_MOVED_PROBABILITY)
    check(value[:5] - value[5:], BY_MOVED_PROBABILITY[:5] @ by_probs[0] / STEP)
    for unit, slope in zip(STEP * np.eye(len(point)), by_parameters, strict=True):
        check(at(point + unit, STAY, STAY)[0][0] - at(point - unit, STAY, STAY)[0][0], slope[0])


def test_entropic_at_beta_zero_has_the_slope_of_half_the_variance(precision):
    law = CategoricalReturn([0.0, 1.0, 4.0], [0.5, 0.25, 0.25])
    slope = jax.jit(jax.grad(lambda beta: Entropic(beta)(law)))(0.0)
    assert float(slope) == pytest.approx(-float(law.variance()) / 2, rel=1e-6)


def test_tiny_seeking_entropic_on_a_wide_law():
    """The branch not taken used to overflow, which made the slope NaN."""
    slope = jax.jit(jax.grad(lambda z: Entropic(-1e-6)(CategoricalReturn(z, [0.5, 0.5]))))(jnp.array([0.0, 200.0]))
    np.testing.assert_allclose(slope, [0.5, 0.5], rtol=1e-3)


def test_composites_of_equal_members_have_finite_slopes():
    """Four equal members: every order of them is right, and a level of a quarter is on a step."""
    atoms = jnp.arange(3.0)
    logits = jnp.zeros((4, 3))

    def value(logits, alpha):
        laws = CategoricalReturn(atoms, jax.nn.softmax(logits))
        return Composite(CVaR(alpha), CVaR(alpha))(Belief(laws))

    slopes = jax.jit(jax.grad(value, argnums=(0, 1)))
    for alpha in (0.25, 0.3, 1.0):
        by_logits, by_alpha = slopes(logits, alpha)
        assert np.isfinite(by_logits).all()
        assert np.isfinite(by_alpha)
