"""The paper's worked example of FTRL weights: three Gaussians, on a fine grid."""

import jax
import numpy as np
import pytest
from scipy import stats

from sentinel_rl.belief import ftrl_losses, ftrl_weights
from tests.risk.reference import FIGURES

EXAMPLE = FIGURES["ftrl_example"]
WEIGHTINGS = {
    ("member_to_marginal", "outliers"): "plus_member_to_marginal(paper numbers)",
    ("member_to_marginal", "consensus"): "minus_member_to_marginal(sound)",
    ("marginal_to_member", "outliers"): "plus_marginal_to_member(paper formula)",
    ("marginal_to_member", "consensus"): "minus_marginal_to_member",
}


@pytest.fixture(scope="module")
def log_probs():
    """Densities at 4001 points of [-10, 10]: far enough out for KL(m || Z_2), which lives in the tails of Z_2."""
    grid = np.linspace(-10, 10, 4001)
    log_density = np.stack(
        [stats.norm.logpdf(grid, mu, sd) for mu, sd in zip(EXAMPLE["mu"], EXAMPLE["sd"], strict=True)]
    )
    with jax.enable_x64(True):
        return jax.nn.log_softmax(log_density, axis=-1)


@pytest.mark.parametrize("divergence", ["member_to_marginal", "marginal_to_member"])
def test_losses(log_probs, divergence, x64):
    np.testing.assert_allclose(ftrl_losses(log_probs, divergence), EXAMPLE[f"kl_{divergence}"], rtol=0, atol=1e-4)


@pytest.mark.parametrize(("divergence", "prefer"), WEIGHTINGS)
def test_weights(log_probs, divergence, prefer, x64):
    expected = EXAMPLE["weights_lambda1"][WEIGHTINGS[divergence, prefer]]
    np.testing.assert_allclose(ftrl_weights(log_probs, 1.0, divergence, prefer), expected, rtol=0, atol=1e-4)


def test_what_the_paper_prints(log_probs, x64):
    """KL [.48, .92, .74] and weights [.26, .40, .34]: that is member_to_marginal with outliers."""
    losses = np.asarray(ftrl_losses(log_probs, "member_to_marginal"))
    weights = np.asarray(ftrl_weights(log_probs, 1.0, "member_to_marginal", "outliers"))
    np.testing.assert_array_equal(losses.round(2), [0.48, 0.92, 0.74])
    np.testing.assert_array_equal(weights.round(2), [0.26, 0.4, 0.34])
