"""What users write on the command line as values: ``name=value`` settings, seeds, an observation."""

import ast
from collections.abc import Sequence
from typing import Any

import numpy as np

from sentinel_rl.agents.options import require_known
from sentinel_rl.agents.registry import agent_kind, options_of_kind
from sentinel_rl.errors import UsageError
from sentinel_rl.training.schedule import require_seeds

# Options of the plan of a run, beside those of the agent, with an example of their type.
PLAN: dict[str, Any] = {
    "learn_every": 100,
    "warmup": 100,
    "epsilon_start": 1.0,
    "epsilon_end": 0.05,
    "epsilon_fraction": 0.25,
    "longest_bout": 64,
}
# Examples where the default does not tell the type.
EXAMPLES: dict[str, Any] = {**PLAN, "hidden": (256, 256), "layer_norm": True, "average_over": 10}


def parse_settings(settings: Sequence[str], agent: str = "sentinel") -> dict[str, Any]:
    """Read ``name=value`` settings of an agent.

    Raises:
        UsageError: for an unknown name (with the nearest) or a value of another kind.

    Example:
        >>> parse_settings(["k=8", "hidden=64,64", "mask=poisson"])
        {'k': 8, 'hidden': (64, 64), 'mask': 'poisson'}
    """
    chosen = {}
    for setting in settings:
        name, sign, text = setting.partition("=")
        if not sign:
            raise UsageError(f"--set {setting}: write it as name=value, for example --set batch=64")
        require_known([name.strip()], (*agent_kind(agent).options, *PLAN))
        chosen[name.strip()] = checked_option(agent, name.strip(), parse_value(text.strip()))
    return chosen


def parse_seeds(text: str) -> list[int]:
    """Read seeds: a number of them, or a list.

    Example:
        >>> parse_seeds("3"), parse_seeds("3,7,9")
        ([0, 1, 2], [3, 7, 9])
    """
    try:
        numbers = [int(part) for part in text.split(",") if part.strip()]
        return require_seeds(numbers if "," in text else numbers[0])
    except (IndexError, ValueError) as error:
        why = f" ({error})" if isinstance(error, UsageError) else ""
        raise UsageError(
            f"--seeds {text[:80]}: give how many (5 means 0 to 4), or a list of different ones (3,7,9){why}"
        ) from None


def parse_observation(text: str, size: int) -> np.ndarray:
    """Read an observation of so many numbers: ``"0,0,0.1,0"``."""
    try:
        numbers = np.array([float(part) for part in text.replace(",", " ").split()], np.float32)
    except ValueError as error:
        raise UsageError(f"--obs {text!r}: {error}. Give numbers, separated by commas") from None
    if numbers.shape != (size,) or not np.isfinite(numbers).all():
        raise UsageError(f"--obs {text!r}: expected {size} finite numbers, separated by commas, got {numbers.size}")
    return numbers


def parse_value(text: str) -> Any:
    """Read a number, a tuple of numbers, None, or text.

    Example:
        >>> parse_value("64,64"), parse_value("0.5"), parse_value("poisson")
        ((64, 64), 0.5, 'poisson')
    """
    try:
        return ast.literal_eval(text)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return float(text) if text.lower() in ("inf", "+inf", "-inf") else text


def checked_option(agent: str, name: str, value: Any) -> Any:
    """Compare with the kind of the option's default: a text in place of a number is a slip."""
    example = EXAMPLES.get(name, options_of_kind(agent).get(name))
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if name == "learn_every" and value == "triangular":
        return value
    if isinstance(example, bool):
        return {"true": True, "false": False}.get(str(value).lower(), value)
    if isinstance(example, tuple):
        value = (value,) if isinstance(value, int) else value
        if not isinstance(value, tuple):
            raise UsageError(f"{name} must be sizes, for example {name}=64,64, got {value!r}")
    if isinstance(example, int) and not (number and value == value // 1):
        raise UsageError(f"{name} must be a whole number, got {value!r}")
    if isinstance(example, float) and not number:
        raise UsageError(f"{name} must be a number, got {value!r}")
    return int(value) if isinstance(example, int) else value
