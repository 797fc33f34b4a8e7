"""Gradients by atoms, probabilities and parameters: right at regular points, finite at the others."""

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
from tests.risk.zoo import MEASURES


def values(measures, atoms, probs):
    """One value per measure, each on a law of its own ``[measure, n]``, so that gradients do not mix."""
    laws = [CategoricalReturn(a, p) for a, p in zip(atoms, probs, strict=True)]
    return jnp.stack([measure(law) for measure, law in zip(measures, laws, strict=True)])


slopes = jax.jit(jax.grad(lambda *arguments: values(*arguments).sum(), argnums=(0, 1, 2)))
plain = jax.jit(values)


def test_slopes_are_finite_differences_at_a_regular_point(x64):
    """No ties, no zeros, no level on a step; probabilities move from one atom to the next, so that they sum to one."""
    n, count, h = 5, len(MEASURES), 1e-6
    rng = np.random.default_rng(3)
    atoms, probs = (np.tile(x, (count, 1)) for x in (np.sort(rng.normal(size=n)), rng.dirichlet(np.full(n, 3.0))))
    by_parameters, by_atoms, by_probs = jax.tree.map(np.asarray, slopes(MEASURES, atoms, probs))

    def central(measures, move_atoms, move_probs):
        up, down = (plain(measures(s), atoms + s * move_atoms, probs + s * move_probs) for s in (h, -h))
        return (np.asarray(up) - np.asarray(down)) / (2 * h)

    for j, unit in enumerate(np.eye(n)):
        np.testing.assert_allclose(by_atoms[:, j], central(lambda _: MEASURES, unit, 0), atol=1e-7, rtol=1e-6)
        move = unit - np.roll(unit, 1)
        np.testing.assert_allclose(by_probs @ move, central(lambda _: MEASURES, 0, move), atol=1e-6, rtol=1e-6)
    # All first parameters move together, then all second ones (only MeanSemideviation has two).
    for place in (0, 1):

        def moved(s, place=place):
            return [with_leaf(measure, place, lambda leaf: leaf + s) for measure in MEASURES]

        found = [leaf_or_zero(measure, place) for measure in by_parameters]
        np.testing.assert_allclose(found, central(moved, 0, 0), atol=1e-6, rtol=1e-6)


def with_leaf(measure, place, change):
    leaves, tree = jax.tree.flatten(measure)
    return jax.tree.unflatten(tree, [change(leaf) if i == place else leaf for i, leaf in enumerate(leaves)])


def leaf_or_zero(measure, place):
    return float((*jax.tree.leaves(measure), 0.0, 0.0)[place])


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


@pytest.mark.parametrize(("cls", "columns"), NASTY, ids=[f"{cls.__name__}-{i}" for i, (cls, _) in enumerate(NASTY)])
def test_values_and_slopes_are_finite_everywhere(cls, columns, precision):
    atoms, probs = (jnp.array(part, precision) for part in zip(*NASTY_LAWS.values(), strict=True))

    def slope(parameters, a, p):
        def value(parameters, a, p):
            return cls(*parameters)(CategoricalReturn(a, p))

        return value(parameters, a, p), jax.grad(value, argnums=(0, 1, 2))(parameters, a, p)

    over_laws = jax.vmap(slope, in_axes=(None, 0, 0))
    parameters = tuple(jnp.array(column, precision) for column in columns)
    mapped = jax.vmap(over_laws, in_axes=(0, None, None)) if columns else over_laws
    for leaf in jax.tree.leaves(jax.jit(mapped)(parameters, atoms, probs)):
        bad = np.argwhere(~np.isfinite(leaf))
        assert not len(bad), [list(NASTY_LAWS)[index[1 if columns else 0]] for index in bad]


def test_entropic_at_beta_zero_has_the_slope_of_half_the_variance(precision):
    law = CategoricalReturn([0.0, 1.0, 4.0], [0.5, 0.25, 0.25])
    slope = jax.jit(jax.grad(lambda beta: Entropic(beta)(law)))(0.0)
    assert float(slope) == pytest.approx(-float(law.variance()) / 2, rel=1e-6)


def test_tiny_seeking_entropic_on_a_wide_law():
    """The branch not taken used to overflow, which made the slope NaN."""
    slope = jax.grad(lambda atoms: Entropic(-1e-6)(CategoricalReturn(atoms, [0.5, 0.5])))(jnp.array([0.0, 200.0]))
    np.testing.assert_allclose(slope, [0.5, 0.5], rtol=1e-3)


@pytest.mark.parametrize("alpha", [0.25, 0.3, 1.0])
def test_composites_of_equal_members_have_finite_slopes(alpha):
    """Four equal members: every order of them is right, and a level of a quarter is on a step."""
    atoms = jnp.arange(3.0)
    logits = jnp.zeros((4, 3))

    def value(logits, alpha):
        laws = CategoricalReturn(atoms, jax.nn.softmax(logits))
        return Composite(CVaR(alpha), CVaR(alpha))(Belief(laws))

    for slope in jax.jit(jax.grad(value, argnums=(0, 1)))(logits, alpha):
        assert np.isfinite(slope).all()
