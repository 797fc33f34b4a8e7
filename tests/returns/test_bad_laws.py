"""What is not a law is refused, with what was given, what is allowed and what to do."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sentinel_rl.returns import CategoricalReturn, Support

GRID = [0.0, 1.0, 2.0]


@pytest.mark.parametrize(
    ("atoms", "probs", "message"),
    [
        (GRID, [0.5, 0.7, -0.2], r"probs holds -0.2 at index \(2,\): probabilities must not be negative"),
        (GRID, [0.5, np.nan, 0.5], r"probs holds nan at index \(1,\): probabilities must be finite"),
        (GRID, [0.5, np.inf, 0.5], r"probs holds inf at index \(1,\): probabilities must be finite"),
        (
            GRID,
            [0.5, 0.4, 0.0],
            r"probs sums to 0.9 .* must sum to 1 within 0.0001. Divide by the sum, or use .*from_sam",
        ),
        (GRID, [[0.2, 0.3, 0.5], [0.2, 0.3, 0.6]], r"probs sums to 1.1 along axis -1"),
        (
            [1.0, 0.0, 2.0],
            [0.2, 0.3, 0.5],
            r"atoms do not ascend \(a step of -1 at index \(0,\)\): sort .*from_samples",
        ),
        ([0.0, np.nan, 2.0], [0.2, 0.3, 0.5], r"atoms holds nan at index \(1,\): atoms must be finite"),
        ([0.0, 1.0, np.inf], [0.2, 0.3, 0.5], r"atoms holds inf at index \(2,\): atoms must be finite"),
        ([], [], r"atoms is empty \(shape \(0,\)\): give at least one atom"),
        (GRID, np.zeros((0, 3)), r"probs is empty \(shape \(0, 3\)\): give at least one probability"),
        (1.0, 1.0, r"a law needs arrays of atoms and of probs, got shapes \(\) and \(\)"),
        (
            GRID,
            [0.5, 0.5],
            r"atoms of shape \(3,\) and probs of shape \(2,\) do not match: the last axes must be equal",
        ),
        ([[0.0, 1.0]] * 3, [[0.5, 0.5]] * 2, r"atoms of shape \(3, 2\) and probs of shape \(2, 2\) do not match"),
        ([[0.0, 1.0]], [0.5, 0.5], r"atoms of shape \(1, 2\) and probs of shape \(2,\) do not match"),
    ],
)
def test_laws(atoms, probs, message):
    with pytest.raises(ValueError, match=message):
        CategoricalReturn(atoms, probs)


def test_the_tolerance_of_the_sum():
    assert CategoricalReturn(GRID, [0.5, 0.49995, 0.0]).probs.shape == (3,)
    with pytest.raises(ValueError, match=r"sums to 0\.9997"):
        CategoricalReturn(GRID, [0.5, 0.4997, 0.0])


@pytest.mark.parametrize(
    ("values", "weights", "axis", "message"),
    [
        ([], None, -1, r"values of shape \(0,\) hold no samples: give an array with at least one"),
        (3.0, None, -1, r"values of shape \(\) hold no samples"),
        ([1.0, np.nan], None, -1, r"values hold nan at index \(1,\): samples must be finite"),
        ([1.0, -np.inf], None, -1, r"values hold -inf at index \(1,\): samples must be finite"),
        ([1.0, 2.0], [1.0, -1.0], -1, r"weights hold -1 at index \(1,\): weights must be finite and not negative"),
        ([1.0, 2.0], [1.0, np.nan], -1, r"weights hold nan at index \(1,\): weights must be finite"),
        ([1.0, 2.0], [0.0, 0.0], -1, r"weights are all zero along axis -1: at least one must be positive"),
        ([[1.0, 2.0]] * 2, [[1.0, 1.0], [0.0, 0.0]], -1, "weights are all zero along axis -1"),
        (
            [1.0, 2.0],
            [1.0, 1.0, 1.0],
            -1,
            r"weights of shape \(3,\) do not match values of shape \(2,\): give the same",
        ),
        ([[1.0, 2.0]] * 3, [1.0, 1.0], 0, r"weights of shape \(2,\) do not match .* one weight per sample \(3,\)"),
        ([1.0, 2.0], None, 1, r"axis 1 does not exist in values of shape \(2,\)"),
    ],
)
def test_samples(values, weights, axis, message):
    with pytest.raises(ValueError, match=message):
        CategoricalReturn.from_samples(values, weights, axis)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1.0, 0.0, 5), r"Support needs finite low < high, got low=1.0, high=0.0"),
        ((0.0, np.inf, 5), "Support needs finite low < high"),
        ((np.nan, 1.0, 5), "Support needs finite low < high"),
        ((0.0, 1.0, 1), "Support needs at least 2 atoms, got size=1"),
    ],
)
def test_supports(arguments, message):
    with pytest.raises(ValueError, match=message):
        Support(*arguments)


def test_inside_jit_only_shapes_are_checked():
    """Values are unknown there: a bad one goes through the formula, and a NaN comes out as a NaN."""
    mean = jax.jit(lambda atoms, probs: CategoricalReturn(atoms, probs).mean())
    assert float(mean(jnp.array([0.0, 1.0]), jnp.array([0.5, 0.6]))) == pytest.approx(0.6)
    assert np.isnan(mean(jnp.array([0.0, 1.0]), jnp.array([0.5, jnp.nan])))
    with pytest.raises(ValueError, match="do not match"):
        mean(jnp.array([0.0, 1.0]), jnp.array([0.5, 0.3, 0.2]))
