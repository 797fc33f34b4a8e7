"""Mixtures of laws on one grid and on atoms of their own."""

import jax
import numpy as np
import pytest
from hypothesis import given

from sentinel_rl.returns import CategoricalReturn
from tests.risk.strategies import MEMBERS, SCENARIOS, masses, returns

own_mixture = jax.jit(lambda atoms, probs, trust: CategoricalReturn.from_samples(atoms, probs).mixture(trust))
shared_mixture = jax.jit(lambda atoms, probs, trust: CategoricalReturn(atoms, probs).mixture(trust))


@given(returns(MEMBERS, SCENARIOS), masses(MEMBERS, SCENARIOS), masses(MEMBERS))
def test_own_atoms_are_pooled(atoms, probs, trust):
    with jax.enable_x64(True):
        law = own_mixture(atoms, probs, trust)
        mean, variance = float(law.mean()), float(law.variance())
    assert law.atoms.shape == (MEMBERS * SCENARIOS,)
    assert (np.diff(law.atoms) >= 0).all()
    joint = (trust[:, None] * probs).ravel()
    assert mean == pytest.approx(joint @ atoms.ravel(), abs=1e-9)
    assert variance == pytest.approx(np.cov(atoms.ravel(), aweights=joint, ddof=0), abs=1e-6)


@given(returns(), masses(MEMBERS, SCENARIOS), masses(MEMBERS))
def test_a_shared_grid_stays(x, probs, trust):
    grid = np.sort(x)
    with jax.enable_x64(True):
        law = shared_mixture(grid, probs, trust)
        np.testing.assert_array_equal(law.atoms, grid)
        np.testing.assert_allclose(law.probs, trust @ probs, rtol=0, atol=1e-14)


def test_a_grid_per_action_is_shared_by_the_members():
    grids = np.array([[[0.0, 1.0], [10.0, 20.0]]])  # one for all members, two actions
    probs = np.array([[[1.0, 0.0], [1.0, 0.0]], [[0.0, 1.0], [0.5, 0.5]]])
    law = CategoricalReturn(grids, probs).mixture([0.5, 0.5])
    assert law.probs.shape == (2, 2)
    np.testing.assert_allclose(law.mean(), [0.5, 12.5], rtol=1e-6)


def test_own_atoms_with_further_axes():
    atoms = np.array([[[0.0, 1.0], [2.0, 3.0]], [[4.0, 5.0], [6.0, 7.0]]])
    law = CategoricalReturn(atoms, np.full((2, 2, 2), 0.5)).mixture([0.25, 0.75])
    np.testing.assert_allclose(law.mean(), [0.25 * 0.5 + 0.75 * 4.5, 0.25 * 2.5 + 0.75 * 6.5], rtol=1e-6)


def test_weights_per_action_and_none():
    probs = np.array([[[1.0, 0.0]] * 2, [[0.0, 1.0]] * 2])
    laws = CategoricalReturn([0.0, 1.0], probs)
    np.testing.assert_allclose(laws.mixture([[0.9, 0.2], [0.1, 0.8]]).mean(), [0.1, 0.8], rtol=1e-6)
    np.testing.assert_allclose(laws.mixture().mean(), [0.5, 0.5])


def test_bad_mixtures():
    with pytest.raises(ValueError, match=r"mixture needs a leading member axis, got probs of shape \(2,\)"):
        CategoricalReturn([0.0, 1.0], [0.5, 0.5]).mixture()
    laws = CategoricalReturn([0.0, 1.0], [[0.5, 0.5], [0.1, 0.9]])
    with pytest.raises(ValueError, match=r"weights of shape \(3,\) do not fit members of shape \(2,\)"):
        laws.mixture([0.2, 0.3, 0.5])
    with pytest.raises(ValueError, match="weights sums to 2 along axis 0"):
        laws.mixture([1.0, 1.0])
