"""The toy MDP's distances at a tiny size: what is known without learning, and that learning helps."""

import dataclasses

import jax
import numpy as np
import pytest

from sentinel_paper.fig_toy_laws import laws
from sentinel_paper.toy_wasserstein import SETTINGS, Distance, Settings, make_neutral, run
from sentinel_rl.envs.toy import Toy
from sentinel_rl.returns import GaussianMixture

TINY = Settings(
    points=(0, 600),
    seeds=(0,),
    noises=(0.1, 0.4),
    draws=500,
    options=(("learning_rate", 2e-2), ("capacity", 600), ("hidden", (16,)), ("samples", 32)),
)


@pytest.fixture(scope="module")
def found() -> list[Distance]:
    return run(TINY)


def of(found: list[Distance], **wanted: object) -> np.ndarray:
    rows = [row for row in found if all(getattr(row, name) == value for name, value in wanted.items())]
    return np.array([row.distance for row in rows])


def test_there_is_a_row_for_everything(found: list[Distance]):
    assert len(found) == 2 * 2 * (1 + 2)
    assert {(row.agent, row.noise) for row in found} == {("sentinel", 0.0), ("vdqn", 0.1), ("vdqn", 0.4)}
    assert np.isfinite([row.distance for row in found]).all()


def test_learning_brings_the_laws_nearer(found: list[Distance]):
    for agent, noise in [("sentinel", 0.0), ("vdqn", 0.1)]:
        before, after = (of(found, agent=agent, noise=noise, points=points) for points in TINY.points)
        assert np.all(after < before / 2), (agent, before, after)


def test_a_wrong_noise_cannot_be_learnt_away(found: list[Distance]):
    """However well the mean is known, N(m, .4^2) stays 0.24 = sqrt(2 / pi) (.4 - .1) away from N(m, .1^2)."""
    assert np.all(of(found, agent="vdqn", noise=0.4, points=600) > 0.2)
    best = GaussianMixture.gaussian(0.95, 0.4)
    assert float(Toy().distance(1, best)) == pytest.approx(np.sqrt(2 / np.pi) * 0.3, rel=0.01)


def test_the_floor_of_the_grid_is_far_below_what_is_told_apart():
    assert SETTINGS.floor == pytest.approx(0.0025)
    assert SETTINGS.floor * 10 <= float(Toy().distance(0, Toy().law(1))) * 1.001
    assert dataclasses.replace(SETTINGS, atoms=51).floor > SETTINGS.floor


def test_the_laws_of_the_members_and_of_their_mixture():
    """The probabilities of the mixture lie between those of the members."""
    agent = make_neutral(TINY)
    members, mixture = map(np.asarray, laws(agent, agent.init(Toy().spec, jax.random.key(0))))
    assert members.shape == (4, 2, TINY.atoms)
    assert mixture.shape == (2, TINY.atoms)
    np.testing.assert_allclose(members.sum(axis=-1), 1, rtol=1e-5)
    assert np.all(mixture >= members.min(axis=0) - 1e-6)
    assert np.all(mixture <= members.max(axis=0) + 1e-6)
