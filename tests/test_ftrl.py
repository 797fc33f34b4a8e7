"""FTRL weights: limits, infinities, ties, symmetry, and an independent computation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import special, stats

from sentinel_rl.belief import ftrl_losses, ftrl_weights

COMPILE_QUICKLY = True

DIVERGENCES = ["marginal_to_member", "member_to_marginal"]
PREFERENCES = ["consensus", "outliers"]
K, N = 3, 4
LOGITS = arrays(np.float64, (K, N), elements=st.one_of(st.integers(-2, 2).map(float), st.floats(-20, 20)))

losses = jax.jit(ftrl_losses, static_argnames="divergence")
weights = jax.jit(ftrl_weights, static_argnames=("divergence", "prefer"))
every_option = pytest.mark.parametrize(("divergence", "prefer"), [(d, p) for d in DIVERGENCES for p in PREFERENCES])


def log_probs(probs):
    with np.errstate(divide="ignore"):
        return np.log(np.asarray(probs, float))


@every_option
@given(LOGITS, st.floats(0, 30))
def test_against_scipy(divergence, prefer, logits, lam):
    log_p = special.log_softmax(logits, axis=-1)
    p = np.exp(log_p)
    pairs = [(p.mean(0), member) if divergence == "marginal_to_member" else (member, p.mean(0)) for member in p]
    expected = np.array([stats.entropy(*pair) for pair in pairs])
    sign = -1 if prefer == "consensus" else 1
    with jax.enable_x64(True):
        np.testing.assert_allclose(losses(log_p, divergence), expected, rtol=1e-9, atol=1e-12)
        found = weights(log_p, lam, divergence, prefer)
        np.testing.assert_allclose(found, special.softmax(sign * lam * expected), rtol=1e-7, atol=1e-12)


@every_option
@given(LOGITS, st.floats(0, 30), st.permutations(range(K)))
def test_the_order_of_members_does_not_matter(divergence, prefer, logits, lam, order):
    log_p = special.log_softmax(logits, axis=-1)
    with jax.enable_x64(True):
        found, permuted = (np.asarray(weights(rows, lam, divergence, prefer)) for rows in (log_p, log_p[order]))
    np.testing.assert_allclose(found[order], permuted, rtol=1e-9, atol=1e-15)


@given(LOGITS)
def test_member_to_marginal_is_bounded(logits):
    with jax.enable_x64(True):
        found = np.asarray(losses(special.log_softmax(logits, axis=-1), "member_to_marginal"))
    assert (found <= np.log(K) + 1e-12).all()
    assert (found >= -1e-12).all()


@every_option
def test_lambda_zero_averages(divergence, prefer):
    """Also with members that exclude what others allow: 0 times an infinite loss is 0."""
    found = weights(log_probs([[1, 0, 0, 0], [0, 0.5, 0.5, 0], [0.25] * 4]), 0.0, divergence, prefer)
    np.testing.assert_array_equal(found, np.float32([1 / 3] * 3))


@every_option
@pytest.mark.parametrize("lam", [1e3, np.inf])
def test_large_lambda_is_greedy(divergence, prefer, lam):
    """Two members agree, the third does not: the two share everything, or the third has it all."""
    found = weights(log_probs([[0.7, 0.1, 0.1, 0.1]] * 2 + [[0.1, 0.1, 0.1, 0.7]]), lam, divergence, prefer)
    np.testing.assert_allclose(found, [0.5, 0.5, 0] if prefer == "consensus" else [0, 0, 1], atol=1e-6)


def test_infinite_losses_get_no_weight():
    """KL(m || Z_i) is infinite for the members that exclude the last outcome; only the third allows all."""
    log_p = log_probs([[0.5, 0.5, 0, 0], [0.9, 0.1, 0, 0], [0.25] * 4])
    np.testing.assert_array_equal(np.isinf(losses(log_p)), [True, True, False])
    for lam in (1e-3, 1.0, np.inf):
        np.testing.assert_array_equal(weights(log_p, lam), [0, 0, 1])
        np.testing.assert_array_equal(weights(log_p, lam, prefer="outliers"), [0.5, 0.5, 0])


@pytest.mark.parametrize("prefer", PREFERENCES)
def test_all_losses_infinite_is_uniform(prefer):
    log_p = log_probs([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]])
    assert np.isposinf(losses(log_p)).all()
    for lam in (0.0, 1.0, np.inf):
        np.testing.assert_allclose(weights(log_p, lam, prefer=prefer), [1 / 3] * 3, rtol=1e-6)


@every_option
def test_one_member_has_all_the_weight(divergence, prefer):
    for lam in (0.0, 1.0, 1e3, np.inf):
        assert weights(log_probs([[0.5, 0.5, 0, 0]]), lam, divergence, prefer) == 1.0


@every_option
@pytest.mark.parametrize("lam", [0.0, 1.0, np.inf])
def test_equal_members_share(divergence, prefer, lam):
    found = weights(log_probs([[0.1, 0.2, 0.3, 0.4]] * 3), lam, divergence, prefer)
    np.testing.assert_allclose(found, [1 / 3] * 3, rtol=1e-5)


@every_option
def test_large_logits_stay_finite_in_float32(divergence, prefer):
    """Naive float32 probabilities underflow in nearly every draw at this spread."""
    logits = np.random.default_rng(0).normal(0, 20, (4, 500, 51))
    log_p = special.log_softmax(logits, axis=-1).astype(np.float32)
    for lam in (0.1, 4.6, 1e3):
        found = weights(log_p, lam, divergence, prefer)
        assert np.isfinite(losses(log_p, divergence)).all()
        np.testing.assert_allclose(found.sum(0), 1, atol=1e-5)
        assert (found >= 0).all()


def test_lambda_is_mapped_over_with_vmap():
    log_p = log_probs([[0.7, 0.1, 0.1, 0.1]] * 2 + [[0.1, 0.1, 0.1, 0.7]])
    lams = jnp.array([0.0, 0.3, jnp.inf])
    found = jax.jit(jax.vmap(ftrl_weights, in_axes=(None, 0)))(log_p, lams)
    np.testing.assert_allclose(found, [weights(log_p, lam) for lam in (0.0, 0.3, np.inf)], rtol=1e-6)


@every_option
def test_a_nan_reaches_every_weight(divergence, prefer):
    log_p = log_probs([[0.7, 0.1, 0.2, 0], [0.7, 0.1, 0.1, 0.1], [1, 0, 0, 0]])
    log_p[1, 1] = np.nan
    for lam in (0.0, 1.0, np.inf):
        assert np.isnan(weights(log_p, lam, divergence, prefer)).all()
    assert np.isnan(losses(log_p, divergence)).all()
    clean = log_probs([[0.7, 0.1, 0.1, 0.1]] * 3)
    assert np.isnan(weights(clean, np.nan, divergence, prefer)).all()


@every_option
def test_gradients_are_finite(divergence, prefer):
    logits = jnp.array([[0.0, 1.0, -300.0, 2.0], [0.0, 1.0, -300.0, 2.0], [50.0, 0.0, -jnp.inf, 0.0]])

    def trust(logits, lam):
        return ftrl_weights(jax.nn.log_softmax(logits), lam, divergence, prefer)[0]

    slopes = jax.jit(jax.grad(trust, argnums=(0, 1)))
    for lam in (0.0, 1.0, 1e3):
        by_logits, by_lam = slopes(logits, lam)
        assert np.isfinite(by_logits[np.isfinite(logits)]).all()
        assert np.isfinite(by_lam)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"lam": -1.0}, r"lam = -1.0 is not allowed: it must be at least 0 \(0 averages, infinity is greedy\)"),
        ({"lam": np.nan}, "lam = nan is not allowed"),
        ({"lam": [0.1, 1.0]}, r"lam must be one number, got shape \(2,\): map over several with jax.vmap"),
        ({"lam": 1.0, "prefer": "both"}, "unknown prefer 'both': choose one of 'consensus', 'outliers'"),
        ({"lam": 1.0, "divergence": "kl"}, "unknown divergence 'kl': choose one of 'marginal_to_member', 'member_to"),
        ({"lam": 1.0, "log_probs": np.log([0.5, 0.5])}, r"log_probs needs axes \[K, ..., n\], got shape \(2,\)"),
        ({"lam": 1.0, "log_probs": [[0.5, 0.5]]}, r"exp\(log_probs\) sums to 3.29744 along axis -1"),
    ],
)
def test_bad_input(arguments, message, untyped):
    with pytest.raises(ValueError, match=message):
        ftrl_weights(**{"log_probs": np.log([[0.5, 0.5]]), **arguments})
