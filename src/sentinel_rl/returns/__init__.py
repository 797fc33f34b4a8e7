"""Laws of a return, a real random variable."""

from sentinel_rl.returns.categorical import CategoricalReturn, Support
from sentinel_rl.returns.gaussian import GaussianMixture

__all__ = ["CategoricalReturn", "GaussianMixture", "Support"]
