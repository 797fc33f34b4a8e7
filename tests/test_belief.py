"""Beliefs: members, weights and their mixture."""

import jax.numpy as jnp
import numpy as np
import pytest

from sentinel_rl.belief import Belief, marginal
from sentinel_rl.returns import CategoricalReturn

LAWS = CategoricalReturn([0.0, 1.0, 4.0], [[0.5, 0.5, 0.0], [0.0, 0.25, 0.75]])


def test_mixture_and_marginal_by_hand():
    np.testing.assert_allclose(Belief(LAWS, [0.2, 0.8]).mixture().probs, [0.1, 0.3, 0.6], rtol=1e-6)
    np.testing.assert_allclose(marginal(LAWS).probs, [0.25, 0.375, 0.375], rtol=1e-6)
    np.testing.assert_allclose(Belief(LAWS).mixture().probs, marginal(LAWS).probs)


def test_equal_weights_when_none_are_given():
    many = CategoricalReturn([0.0, 1.0], jnp.full((4, 3, 2), 0.5))
    np.testing.assert_array_equal(Belief(many).weights, np.full((4, 3), 0.25))


def test_one_weight_per_member_or_one_per_member_and_action():
    laws = CategoricalReturn([0.0, 1.0], np.tile([[[1.0, 0.0]], [[0.0, 1.0]]], (1, 3, 1)))
    shared = Belief(laws, [0.25, 0.75])
    np.testing.assert_allclose(shared.weights, [[0.25] * 3, [0.75] * 3])
    np.testing.assert_allclose(shared.mixture().mean(), [0.75] * 3)
    own = Belief(laws, [[0.0, 0.5, 1.0], [1.0, 0.5, 0.0]])
    np.testing.assert_allclose(own.mixture().mean(), [1.0, 0.5, 0.0])


def test_one_law_needs_a_member_axis():
    with pytest.raises(
        ValueError, match=r"leading member axis \[K, ..., n\], got probs of shape \(3,\).*probs\[None\]"
    ):
        Belief(CategoricalReturn([0.0, 1.0, 2.0], [0.2, 0.3, 0.5]))


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([0.5, 0.4], r"weights sums to 0.9 along axis 0: it must sum to 1 within 0.0001. Divide by the sum"),
        ([1.5, -0.5], r"weights holds -0.5 at index \(1,\): probabilities must not be negative"),
        ([np.nan, 1.0], r"weights holds nan at index \(0,\): probabilities must be finite"),
        (
            [0.2, 0.3, 0.5],
            r"weights of shape \(3,\) do not fit members of shape \(2,\): give one weight per member \[2\]",
        ),
    ],
)
def test_bad_weights(weights, message):
    with pytest.raises(ValueError, match=message):
        Belief(LAWS, weights)
