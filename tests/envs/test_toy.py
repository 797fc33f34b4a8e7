import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.typing import ArrayLike
from scipy import integrate, stats

from sentinel_rl.envs import Toy
from sentinel_rl.returns import CategoricalReturn, Support
from sentinel_rl.returns.gaussian import GaussianMixture

FIGURES = json.loads((Path(__file__).parents[1] / "reference" / "figure_numbers.json").read_text())["toy_mdp"]
GRID = Support(0.0, 2.0, 51)
SAMPLES = 40_000
STEP = jax.jit(Toy.step)


@pytest.fixture(scope="module", params=[0, 1])
def action(request: pytest.FixtureRequest) -> int:
    return request.param


@pytest.fixture(scope="module")
def sampled() -> list[tuple[np.ndarray, np.ndarray]]:
    """States reached and rewards paid, for each action."""
    toy, keys = Toy(), jax.random.split(jax.random.key(0), SAMPLES)
    start, _ = toy.reset(keys[0])
    play = jax.jit(jax.vmap(lambda action, key: toy.step(start, action, key), in_axes=(None, 0)))
    results = [play(jnp.int32(action), keys) for action in (0, 1)]
    return [(np.asarray(state), np.asarray(after.reward, np.float64)) for state, after in results]


class Truth:
    """The law in SciPy, written down independently."""

    def __init__(self, action: int):
        self.parts = [stats.norm(0.95, 0.1)] if action else [stats.norm(1.0, 0.1), stats.norm(0.95, 0.1)]

    def cdf(self, x: ArrayLike) -> np.ndarray:
        return np.mean([part.cdf(x) for part in self.parts], axis=0)

    def pdf(self, x: ArrayLike) -> np.ndarray:
        return np.mean([part.pdf(x) for part in self.parts], axis=0)

    def mean(self) -> float:
        return np.mean([part.mean() for part in self.parts])


@pytest.mark.usefixtures("x64")
def test_tail_means_are_the_reference_numbers(action: int):
    alphas = jnp.array([float(alpha) for alpha in FIGURES["cvar"]])
    expected = [pair[action] for pair in FIGURES["cvar"].values()]
    np.testing.assert_allclose(jax.jit(GaussianMixture.tail_mean)(Toy().law(action), alphas), expected, atol=1e-12)


@pytest.mark.usefixtures("x64")
def test_moments_and_distance_are_the_reference_numbers():
    toy = Toy()
    assert [float(toy.mean(a)) for a in (0, 1)] == pytest.approx(FIGURES["cvar"]["1.0"], abs=1e-15)
    assert float(toy.law(0).std()) == pytest.approx(0.10307764, abs=5e-9)
    assert float(toy.distance(0, toy.law(1))) == pytest.approx(FIGURES["W1_a0_a1"], abs=1e-9)
    assert float(toy.distance(0, toy.law(0))) == 0


@pytest.mark.usefixtures("x64")
def test_the_cdf_is_scipys(action: int):
    points = np.linspace(0.4, 1.6, 25)
    np.testing.assert_allclose(Toy().cdf(action, points), Truth(action).cdf(points), atol=1e-13)


def test_sampled_returns_follow_the_law(action: int, sampled):
    _, rewards = sampled[action]
    assert abs(rewards.mean() - FIGURES["cvar"]["1.0"][action]) < 4 * rewards.std() / np.sqrt(SAMPLES)
    assert stats.kstest(rewards, Truth(action).cdf).pvalue > 1e-3
    cut = np.quantile(rewards, 0.25)
    shortfall = np.maximum(cut - rewards, 0) / 0.25
    estimate, error = cut - shortfall.mean(), shortfall.std() / np.sqrt(SAMPLES)
    assert abs(estimate - FIGURES["cvar"]["0.25"][action]) < 4 * error


def test_transitions(sampled):
    """Action 0 reaches s1 half of the time, action 1 never; the place and its reward go together."""
    (reached, rewards), (other, _) = sampled
    assert set(reached) == {1, 2}
    assert set(other) == {2}
    assert abs((reached == 1).mean() - 0.5) < 4 * 0.5 / np.sqrt(SAMPLES)
    for place, mean in ((1, 1.0), (2, 0.95)):
        here = rewards[reached == place]
        assert abs(here.mean() - mean) < 4 * 0.1 / np.sqrt(here.size)


def test_one_decision_ends_the_episode_and_the_end_absorbs():
    toy, key = Toy(), jax.random.key(3)
    state, obs = toy.reset(key)
    np.testing.assert_array_equal(obs, [1, 0, 0])
    state, after = STEP(toy, state, jnp.int32(1), key)
    np.testing.assert_array_equal(after.obs, [0, 0, 1])
    assert bool(after.terminated)
    assert not bool(after.truncated)
    state, after = STEP(toy, state, jnp.int32(0), key)
    assert (int(state), float(after.reward), bool(after.terminated)) == (2, 0.0, True)


@pytest.mark.parametrize("action", [-1, 2])
def test_an_action_that_does_not_exist(action: int):
    state, _ = Toy().reset(jax.random.key(0))
    _, after = STEP(Toy(), state, jnp.int32(action), jax.random.key(0))
    assert np.isnan(after.reward)
    with pytest.raises(ValueError, match=f"action {action} does not exist: the toy world has the actions 0 and 1"):
        Toy().law(action)


def test_the_law_on_a_grid_is_the_mean_of_the_hats(action: int, precision: str):
    """Against adaptive quadrature of every atom's hat function."""
    tolerance = 1e-12 if precision == "float64" else 1e-6
    density, atoms = Truth(action).pdf, np.linspace(0.0, 2.0, 51)
    expected = [
        integrate.quad(lambda z, c=c: density(z) * max(0.0, 1 - abs(z - c) / 0.04), c - 0.04, c + 0.04, points=[c])[0]
        for c in atoms
    ]
    on_grid = Toy().categorical(action, GRID)
    np.testing.assert_allclose(on_grid.probs, expected, atol=tolerance)
    assert float(on_grid.probs.sum()) == pytest.approx(1, abs=2 * tolerance)
    assert float(on_grid.mean()) == pytest.approx(Truth(action).mean(), abs=2 * tolerance)


@pytest.mark.usefixtures("x64")
def test_mass_beyond_a_grid_goes_to_its_edges():
    law = Truth(0)
    probs = Toy().categorical(0, Support(0.9, 1.0, 2)).probs
    expected = law.cdf(0.9) + integrate.quad(lambda z: law.pdf(z) * (1.0 - z) / 0.1, 0.9, 1.0)[0]
    np.testing.assert_allclose(probs, [expected, 1 - expected], atol=1e-12)
    np.testing.assert_allclose(Toy().categorical(0, Support(5.0, 6.0, 3)).probs, [1, 0, 0], atol=1e-12)
    np.testing.assert_allclose(Toy().categorical(0, Support(-6.0, -5.0, 3)).probs, [0, 0, 1], atol=1e-12)


@pytest.mark.usefixtures("x64")
def test_no_grid_comes_nearer_than_a_quarter_step(action: int):
    assert float(Toy().distance(action, Toy().categorical(action, GRID))) == pytest.approx(GRID.step / 4, rel=2e-3)


@pytest.mark.parametrize(("action", "wide"), [(0, True), (1, False)])
def test_the_distance_to_atoms_is_the_integral_of_the_gap(action: int, wide: bool):
    """For random laws on ragged atoms, members on a leading axis."""
    rng = np.random.default_rng(action)
    atoms = np.sort(rng.uniform(0.5, 1.5, (3, 7)), axis=-1)
    probs = rng.dirichlet(np.ones(7), 3)
    probs[0] = np.eye(7)[2]
    with jax.enable_x64(wide):
        got = Toy().distance(action, CategoricalReturn(jnp.asarray(atoms), jnp.asarray(probs)))
    points = np.linspace(-0.5, 2.5, 300_001)
    for i in range(3):
        steps = np.concatenate([[0.0], probs[i].cumsum()])[np.searchsorted(atoms[i], points, side="right")]
        gap = np.abs(Truth(action).cdf(points) - steps)
        assert float(got[i]) == pytest.approx(np.trapezoid(gap, points), abs=2e-5)


@pytest.mark.usefixtures("x64")
def test_the_distance_between_gaussians():
    toy, shifted = Toy(), GaussianMixture.gaussian(1.25, 0.1)
    assert float(toy.distance(1, shifted)) == pytest.approx(0.3, abs=1e-6)
    wider = GaussianMixture.gaussian(0.95, 0.3)
    assert float(toy.distance(1, wider)) == pytest.approx(0.2 * np.sqrt(2 / np.pi), abs=1e-6)


def test_impossible_settings_are_refused():
    with pytest.raises(ValueError, match=r"weights sums to 1.5"):
        Toy(weights=(0.5, 1.0))
    with pytest.raises(ValueError, match=r"stds.*must be positive"):
        Toy(stds=(0.1, 0.0))
