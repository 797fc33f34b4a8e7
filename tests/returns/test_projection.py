"""The projection onto the grid: a slow loop, both lowerings, what must be conserved, and cases checked by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from sentinel_rl.returns import CategoricalReturn, Support
from sentinel_rl.returns.projection import _dense, _scatter, clipped_mass, common_grid, on_grid, project

GRID = Support(-1.0, 3.0, 9)  # steps of 1/2
ATOMS = np.linspace(GRID.low, GRID.high, GRID.size)
LAWS = arrays(np.float64, GRID.size, elements=st.integers(0, 8).map(float)).filter(np.any).map(lambda m: m / m.sum())
REWARDS = st.one_of(st.integers(-8, 8).map(lambda halves: halves / 2), st.floats(-5, 5))
DISCOUNTS = st.one_of(st.sampled_from([0.0, 0.5, 1.0]), st.floats(0, 1))

projected = jax.jit(project, static_argnums=0)
clipped = jax.jit(clipped_mass, static_argnums=0)


def at(**masses: float) -> np.ndarray:
    """A law from masses at named places, such as ``z0=0.5``."""
    law = np.zeros(GRID.size)
    for name, mass in masses.items():
        law[int(name[1:])] = mass
    return law


def project_slowly(support: Support, probs: np.ndarray, reward: float, discount: float) -> np.ndarray:
    """Bellemare et al. (2017), algorithm 1, one atom at a time."""
    result = np.zeros(support.size)
    for mass, atom in zip(probs, np.linspace(support.low, support.high, support.size), strict=True):
        place = (np.clip(reward + discount * atom, support.low, support.high) - support.low) / support.step
        below, above = int(np.floor(place)), int(np.ceil(place))
        if below == above:
            result[below] += mass
        else:
            result[below] += mass * (above - place)
            result[above] += mass * (place - below)
    return result


@given(LAWS, REWARDS, DISCOUNTS)
def test_against_a_loop(probs, reward, discount):
    with jax.enable_x64(True):
        found = projected(GRID, probs, reward, discount)
    np.testing.assert_allclose(found, project_slowly(GRID, probs, reward, discount), atol=1e-12)


@given(LAWS, REWARDS, DISCOUNTS)
def test_mass_is_conserved_and_none_is_negative(probs, reward, discount):
    found = np.asarray(projected(GRID, probs.astype(np.float32), np.float32(reward), np.float32(discount)))
    assert found.sum() == pytest.approx(1, abs=1e-6)
    assert (found >= 0).all()


@given(LAWS, st.floats(0, 1), st.floats(0, 1))
def test_the_mean_is_kept_inside_the_support(probs, discount, share):
    lowest, highest = GRID.low * (1 - discount), GRID.high * (1 - discount)  # so that no atom leaves the support
    reward = lowest + share * (highest - lowest)
    with jax.enable_x64(True):
        found = np.asarray(projected(GRID, probs, reward, discount))
        assert max(clipped(GRID, probs, reward, discount)) == 0
    assert found @ ATOMS == pytest.approx(reward + discount * (probs @ ATOMS), abs=1e-12)


@given(LAWS, arrays(np.float64, GRID.size, elements=st.one_of(st.integers(0, 8).map(float), st.floats(0, 8))))
def test_both_lowerings_are_equal(probs, place):
    lower = np.clip(np.floor(place), 0, GRID.size - 2)
    with jax.enable_x64(True):
        both = [jax.jit(lowering)(probs, lower, place - lower) for lowering in (_scatter, _dense)]
    np.testing.assert_allclose(*both, atol=1e-15)


@pytest.mark.parametrize("size", [2, 3, 51])
@pytest.mark.parametrize("discount", [0.0, 1.0])
def test_every_atom_is_hit_exactly(size: int, discount: float):
    support = Support(0.0, 10.0, size)
    start = np.eye(size, dtype=np.float32)[0]
    for j, reward in enumerate(np.asarray(support.atoms)):
        found = np.asarray(projected(support, start, reward, np.float32(discount)))
        np.testing.assert_allclose(found, np.eye(size)[j], atol=1e-5)


@pytest.mark.parametrize(
    ("probs", "reward", "discount", "expected"),
    [
        (at(z2=1), 0.0, 1.0, at(z2=1)),  # nothing happens
        (at(z2=0.5, z4=0.5), 0.5, 1.0, at(z3=0.5, z5=0.5)),  # moved by one atom
        (at(z2=1), 0.125, 1.0, at(z2=0.75, z3=0.25)),  # a quarter of the way
        (at(z0=0.5, z8=0.5), 0.25, 0.0, at(z2=0.5, z3=0.5)),  # terminal: the reward alone
        (at(z0=0.5, z8=0.5), 0.0, 0.5, at(z1=0.5, z5=0.5)),  # shrunk towards zero, which is z2
        (at(z4=1), 99.0, 1.0, at(z8=1)),  # beyond the upper end
        (at(z4=1), -99.0, 1.0, at(z0=1)),  # beyond the lower end
        (at(z8=1), 0.0, 1.0, at(z8=1)),  # on the upper end
        (at(z0=1), 0.0, 1.0, at(z0=1)),  # on the lower end
    ],
)
def test_by_hand(probs: np.ndarray, reward: float, discount: float, expected: np.ndarray):
    found = projected(GRID, probs.astype(np.float32), np.float32(reward), np.float32(discount))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(("reward", "below", "above"), [(0.0, 0, 0), (1.0, 0, 0.5), (-2.5, 0.5, 0), (9.0, 0, 1)])
def test_clipped_mass_by_hand(reward: float, below: float, above: float):
    probs = at(z1=0.25, z4=0.25, z5=0.25, z8=0.25)
    if reward == 1.0:
        probs = at(z0=0.5, z7=0.5)
    found = clipped(GRID, probs.astype(np.float32), np.float32(reward), np.float32(1))
    assert (float(found[0]), float(found[1])) == (below, above)


@pytest.mark.clients
@given(LAWS, REWARDS, DISCOUNTS)
def test_against_rlax(probs, reward, discount):
    import rlax

    with jax.enable_x64(True), jax.numpy_rank_promotion("allow"):
        atoms = jnp.asarray(ATOMS)
        expected = rlax.categorical_l2_project(reward + discount * atoms, jnp.asarray(probs), atoms)
        np.testing.assert_allclose(projected(GRID, probs, reward, discount), expected, atol=1e-6)


def test_laws_on_atoms_of_their_own_are_put_on_one_grid():
    """Mass and mean of every law are kept; one point gets a grid too."""
    rng = np.random.default_rng(0)
    law = CategoricalReturn(np.sort(rng.normal(size=(2, 3, 7)), axis=-1), rng.dirichlet(np.ones(7), (2, 3)))
    grid = common_grid(law, 11)
    probs = on_grid(law, grid)
    np.testing.assert_allclose(probs.sum(axis=-1), 1, rtol=1e-5)
    np.testing.assert_allclose(probs @ np.asarray(grid.atoms), law.mean(), atol=1e-5)
    point = common_grid(CategoricalReturn([1e6, 1e6], [0.5, 0.5]), 151)
    assert np.all(np.diff(np.asarray(point.atoms, np.float32)) > 0)
