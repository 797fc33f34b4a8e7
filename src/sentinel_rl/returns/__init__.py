"""Laws of a return, a real random variable."""

from sentinel_rl.returns.categorical import CategoricalReturn, Support

__all__ = ["CategoricalReturn", "Support"]
