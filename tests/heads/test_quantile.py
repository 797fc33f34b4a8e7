"""Quantile laws: loss, target, order and FTRL's distance, each against something that was not written here."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from sentinel_rl._numerics import sort_values
from sentinel_rl.heads import QuantileHead
from sentinel_rl.heads.quantile import quantile_huber_loss, relative_distances
from sentinel_rl.risk import CVaR

RNG = np.random.default_rng(3)


def by_loops(x: np.ndarray, y: np.ndarray, kappa: float) -> float:
    """The quantile Huber loss as it is printed, pair by pair."""
    total = 0.0
    for i, quantile in enumerate(x):
        for value in y:
            u = value - quantile
            huber = u**2 / 2 if abs(u) <= kappa else kappa * (abs(u) - kappa / 2)
            total += abs((i + 0.5) / len(x) - (u < 0)) * (abs(u) if kappa == 0 else huber) / len(y)
    return total


@pytest.mark.parametrize("kappa", [0.0, 0.3, 1.0])
def test_the_loss_is_the_printed_one(kappa: float):
    x, y = RNG.normal(size=5), 2 * RNG.normal(size=7)
    found = quantile_huber_loss(jnp.asarray(x, jnp.float32), jnp.asarray(y, jnp.float32), kappa)
    assert float(found) == pytest.approx(by_loops(x, y, kappa), rel=1e-5)


def test_the_loss_is_least_at_the_quantiles_of_what_was_seen():
    """Gradient descent on the absolute loss finds the quantiles that NumPy counts."""
    head, seen = QuantileHead(4, kappa=0.0), jnp.asarray(RNG.exponential(size=400), jnp.float32)
    gradient = jax.grad(lambda x: head.loss(x, seen))

    def down(x: jax.Array, step: jax.Array) -> tuple[jax.Array, None]:
        return x - step * gradient(x), None

    found, _ = jax.jit(lambda steps: jax.lax.scan(down, jnp.zeros(4), steps))(jnp.geomspace(0.5, 1e-3, 400))
    np.testing.assert_allclose(found, np.quantile(np.asarray(seen), [0.125, 0.375, 0.625, 0.875]), atol=0.1)


def test_a_target_is_moved_and_its_metrics_are_none():
    target, metrics = QuantileHead(3).target(jnp.array([2.0, 0.0, 1.0]), jnp.asarray(1.0), jnp.asarray(0.5))
    assert (target.tolist(), metrics) == ([2.0, 1.0, 1.5], {})
    assert QuantileHead(2).target(jnp.ones(2), jnp.asarray(3.0), jnp.asarray(0.0))[0].tolist() == [3.0, 3.0]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 51, 64, 300])
@pytest.mark.parametrize("axis", [-1, 1])
def test_values_are_sorted(size: int, axis: int):
    values = jnp.moveaxis(jnp.asarray(RNG.normal(size=(2, 3, size)), jnp.float32), -1, axis)
    np.testing.assert_array_equal(sort_values(values, axis), np.sort(values, axis))


def test_a_nan_is_not_sorted_away():
    assert np.isnan(sort_values(jnp.array([1.0, jnp.nan, 0.0]))).any()


def test_the_distance_is_wasserstein_in_standard_deviations_of_the_mixture():
    """SciPy's distance of every member to the mean of their quantiles; NumPy's spread of all of them."""
    quantiles = np.sort(RNG.normal(size=(3, 2, 6)) * [[[1.0]], [[2.0]], [[5.0]]], axis=-1).astype(np.float32)
    found = relative_distances(jnp.asarray(quantiles))
    for action in range(2):
        middle, spread = quantiles[:, action].mean(axis=0), quantiles[:, action].std()
        expected = [stats.wasserstein_distance(member, middle) / spread for member in quantiles[:, action]]
        np.testing.assert_allclose(found[:, action], expected, rtol=1e-5)
    np.testing.assert_allclose(relative_distances(jnp.asarray(1_000 * quantiles)), found, rtol=1e-5)
    columns = jnp.swapaxes(jnp.asarray(quantiles), 1, 2)
    np.testing.assert_allclose(relative_distances(columns, axis=-2), found, rtol=1e-5)


def test_members_that_are_one_point_agree():
    assert relative_distances(jnp.full((3, 1, 4), 2.0)).tolist() == [[0.0], [0.0], [0.0]]
    assert np.isfinite(jax.grad(lambda x: relative_distances(x).sum())(jnp.full((2, 1, 3), 2.0))).all()


def test_columns_are_the_laws_of_each_observation():
    head, outputs = QuantileHead(9), jnp.asarray(RNG.normal(size=(3, 2, 9, 5)), jnp.float32)
    risks, losses = head.risks_in_columns(outputs, CVaR(0.5), "marginal_to_member")
    for place in range(5):
        laws, each = head.laws_and_losses(outputs[..., place], "marginal_to_member")
        np.testing.assert_allclose(risks[..., place], CVaR(0.5)(laws), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(losses[..., place], each, rtol=1e-5)


@pytest.mark.clients
def test_the_loss_is_that_of_sb3_contrib():
    torch = pytest.importorskip("torch")
    from sb3_contrib.common.utils import quantile_huber_loss as theirs

    x, y = RNG.normal(size=(6, 5)).astype(np.float32), 2 * RNG.normal(size=(6, 5)).astype(np.float32)
    ours = jax.vmap(quantile_huber_loss)(jnp.asarray(x), jnp.asarray(y)).mean()
    found = theirs(torch.tensor(x), torch.tensor(y), sum_over_quantiles=True)
    assert float(ours) == pytest.approx(float(found), rel=1e-5)
