"""CDQN: the categorical DQN (C51, Bellemare et al. 2017), SENTINEL with one member that sees everything."""

from collections.abc import Mapping
from typing import Any

from sentinel_rl.agents.options import OPTIONS, make_sentinel, require_known
from sentinel_rl.agents.sentinel import SentinelAgent
from sentinel_rl.envs.spec import EnvSpec
from sentinel_rl.risk import Expectation

# What makes it CDQN. With one member nothing else can be told from its weights either.
FIXED: Mapping[str, Any] = {
    "k": 1,
    "mask": "bernoulli",
    "mask_rate": 1.0,
    "epistemic": Expectation(),
    "aleatory": Expectation(),
    "lam": 0.0,
    "explore": "ensemble",
}
_OF_SEVERAL = ("aggregate", "divergence", "prefer", "prior_scale", "prior_on", "alpha_start", "alpha_fraction")
CDQN_OPTIONS = tuple(name for name in OPTIONS if name not in {*FIXED, *_OF_SEVERAL})


def make_cdqn(spec: EnvSpec, **options: Any) -> SentinelAgent:
    """Make CDQN from options: those of `make_sentinel` that do not concern several members or risk.

    Raises:
        UsageError: for an unknown option or a value out of range.

    Example:
        >>> agent = make_cdqn(EnvSpec("CartPole-v0", 4, 2, reward_range=(1.0, 1.0), max_steps=200))
        >>> agent.k, agent.mask_rate, str(agent.aleatory)
        (1, 1.0, 'expectation')
    """
    require_known(options, CDQN_OPTIONS)
    return make_sentinel(spec, **FIXED, **options)
