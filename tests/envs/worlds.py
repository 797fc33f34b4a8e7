"""The environments that Gymnasium's faces are tested with."""

import pytest

from sentinel_rl.envs.registry import env_names

# The other highways are the same code with other numbers, and take long to compile.
_SHORT = ("sentinel/highway-v1",)
# Those of the library itself; tests register others.
OURS = [name for name in env_names() if name.startswith("sentinel/")]
NAMES = [
    pytest.param(name, marks=pytest.mark.slow if "highway" in name and name not in _SHORT else ()) for name in OURS
]
