"""Scores of ignorance: against SciPy, by hand, and on members that disagree exactly where nothing was seen."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial import cKDTree
from scipy.spatial.distance import mahalanobis

from sentinel_rl import plotting
from sentinel_rl.agents.abstain import find_score
from sentinel_rl.calibration import diversity, draw_ignorance, ignorance, separations
from sentinel_rl.calibration.ignorance import NEIGHBOURS, _mahalanobis, _nearest
from sentinel_rl.errors import UsageError
from sentinel_rl.replay import Transition
from tests.agents.small import SPEC, fresh, small
from tests.calibration.known import Known

STATE = jnp.zeros(())
SEEN, UNSEEN = np.zeros((5, 1)), np.ones((3, 1))  # `Known` disagrees where 1 is seen
RNG = np.random.default_rng(0)


def test_members_that_disagree_where_nothing_was_seen_separate_and_constants_do_not():
    for apart, expected in ((2.0, 1.0), (0.0, 0.5)):
        told = [ignorance(Known(apart=apart), obs, state=STATE) for obs in (SEEN, UNSEEN)]
        assert separations(*told) == {"epistemic": expected, "disagreement": expected, "laws": expected}


def test_scores_of_the_members_are_those_that_can_be_computed_by_hand():
    """Two equal laws shifted by 2: their means differ by 1 from the centre, and W1 is the shift."""
    told = ignorance(Known(apart=2.0), UNSEEN, state=STATE)
    np.testing.assert_allclose(told["disagreement"], 1.0, rtol=1e-4)
    np.testing.assert_allclose(told["laws"], 2.0, rtol=1e-4)
    np.testing.assert_allclose(told["epistemic"], 1.0, rtol=1e-4)
    score = find_score("laws")(Known(apart=2.0), STATE, jnp.ones(1), jax.random.key(0))
    assert float(score) == pytest.approx(2.0, rel=1e-4)


def test_diversity_by_hand():
    told = diversity(Known(apart=2.0), UNSEEN, state=STATE)
    np.testing.assert_allclose(told["members"], 2.0, rtol=1e-5)
    np.testing.assert_allclose(told["preferences"], 0.0)
    # A mixture of two normal laws with variance 1, one standard deviation to either side.
    np.testing.assert_allclose(told["relative"], 2.0 / np.sqrt(2.0), rtol=1e-2)


@pytest.fixture(scope="module")
def learner() -> tuple[Any, Any]:
    """A fresh agent that has seen twelve observations around (0.5, -1)."""
    agent = small()
    state = fresh(agent)
    observe = jax.jit(type(agent).observe)
    for t, obs in enumerate(RNG.normal((0.5, -1.0), 0.1, (12, 2)).astype(np.float32)):
        seen = Transition(obs, jnp.asarray(0), jnp.asarray(0.0), obs, jnp.asarray(False), jnp.asarray(False))
        state = observe(agent, state, jnp.asarray(t), seen, jax.random.key(t))
    return agent, state


def test_distances_to_the_replay(learner):
    agent, state = learner
    near, far = RNG.normal((0.5, -1.0), 0.05, (20, 2)), RNG.normal((-3.0, 2.0), 0.05, (20, 2))
    told = [ignorance(agent, obs, state=state) for obs in (near, far)]
    assert {name: separations(*told)[name] for name in ("features", "mahalanobis", "observations")} == {
        "features": 1.0,
        "mahalanobis": 1.0,
        "observations": 1.0,
    }
    given = ignorance(agent, near, state=state, reference=np.asarray(state.replay.latest(12).obs))
    assert all(np.array_equal(given[name], told[0][name]) for name in given)
    policy = agent.with_policy(agent.policy(state))
    assert set(ignorance(agent, near, state=policy)) == {"epistemic", "disagreement", "laws"}


def test_distances_against_scipy():
    seen, rows = RNG.normal(size=(300, 4)) @ RNG.normal(size=(4, 4)), RNG.normal(size=(270, 4))
    expected, _ = cKDTree(seen).query(rows, k=NEIGHBOURS)
    np.testing.assert_allclose(_nearest(rows, seen), expected[:, -1], rtol=1e-6)
    covariance = np.cov(seen, rowvar=False, bias=True)
    inverse = np.linalg.inv(covariance + 1e-3 * np.trace(covariance) / 4 * np.eye(4))
    expected = [mahalanobis(row, seen.mean(axis=0), inverse) for row in rows]
    np.testing.assert_allclose(_mahalanobis(rows, seen), expected, rtol=1e-8)
    assert _mahalanobis(np.ones((1, 2)), np.zeros((5, 2))) == pytest.approx(np.sqrt(2 / 1e-3))


def test_bad_input_is_refused(learner):
    agent, state = learner
    with pytest.raises(UsageError, match="SentinelAgent is asked with its state: give state="):
        ignorance(agent, np.zeros((1, 2)))
    with pytest.raises(UsageError, match=r"obs must be finite numbers of the shape \[T, obs\] with T > 0, got \(2,\)"):
        ignorance(agent, np.zeros(2), state=state)
    with pytest.raises(UsageError, match="reference must be finite"):
        ignorance(agent, np.zeros((1, 2)), state=state, reference=[[np.nan, 0.0]])


def test_the_figure_has_a_panel_for_every_score(learner):
    agent, state = learner
    told = [ignorance(agent, RNG.normal(size=(30, SPEC.obs_size)) + far, state=state) for far in (0.0, 4.0)]
    with plotting.figure(9.6, 5.4) as drawing:
        draw_ignorance(drawing, *told)
        titles = [axes.get_title() for axes in drawing.axes]
    assert titles == [f"{name}: AUROC {area:.2f}" for name, area in separations(*told).items()]
