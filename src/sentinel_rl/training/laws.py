"""What logs show of the laws of an ensemble: who is trusted, and what return is expected."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from sentinel_rl.agents.learning import REPORTED_OBSERVATIONS
from sentinel_rl.training.sinks import Histogram

_BINS = 40


class LawReport(NamedTuple):
    """The laws of the preferred actions, over the latest observations.

    Args:
        weights: how much each member is trusted, ``[K]``.
        means: the return that each member expects, ``[K]``.
        law: of the return, all members and observations together.
    """

    weights: np.ndarray
    means: np.ndarray
    law: Histogram


def law_report(agent: Any, state: Any) -> LawReport | None:
    """Ask an agent that has laws for them; None for one that has none, or has seen nothing yet."""
    if not (hasattr(agent, "belief") and hasattr(agent, "composite") and hasattr(state, "replay")):
        return None
    weights, means, values, masses = (np.asarray(part, np.float64) for part in _laws(agent, state))
    if not (np.isfinite(values).all() and np.isfinite(masses).all()):
        return None
    found, edges = np.histogram(values, bins=_BINS, weights=masses)
    return LawReport(weights, means, Histogram(edges, found))


@jax.jit
def _laws(agent: Any, state: Any) -> Any:
    """Weights and mean returns of the members, and all atoms of the preferred actions with their masses."""
    observations = state.replay.latest(REPORTED_OBSERVATIONS).obs

    def preferred(obs: Any) -> Any:
        belief = agent.belief(state, obs)
        best = jnp.argmax(agent.composite(belief))
        members = belief.members
        values, probs = (part[:, best] for part in (members.values, members.probs))
        weights = belief.weights[:, best]
        return weights, jnp.sum(values * probs, axis=-1), values, weights[:, None] * probs

    weights, means, values, masses = jax.vmap(preferred)(observations)
    share = 1 / len(observations)
    return jnp.mean(weights, axis=0), jnp.mean(means, axis=0), values.reshape(-1), masses.reshape(-1) * share
