"""What a sweep varies: ranges of numbers and lists of choices, as text."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sentinel_rl.agents.options import require_known
from sentinel_rl.agents.registry import agent_kind
from sentinel_rl.cli.options import PLAN, checked_option, parse_value
from sentinel_rl.errors import UsageError

_EXAMPLES = "0.1..0.9, 1e-4..1e-2:log, 16..256:log or a|b|c"


class Range(NamedTuple):
    """The values that an option may take: between two numbers, or one of a list.

    Args:
        low: smallest number.
        high: largest number.
        log: whether ratios count, and not differences.
        choices: in place of the numbers; their texts are what a study keeps.
    """

    low: float | int = 0
    high: float | int = 0
    log: bool = False
    choices: Mapping[str, Any] | None = None

    def suggest(self, name: str, trial: Any) -> Any:
        """Ask an Optuna trial for a value."""
        if self.choices is not None:
            return self.choices[trial.suggest_categorical(name, list(self.choices))]
        if isinstance(self.low, int) and isinstance(self.high, int):
            return trial.suggest_int(name, self.low, self.high, log=self.log)
        return trial.suggest_float(name, float(self.low), float(self.high), log=self.log)

    def value(self, kept: Any) -> Any:
        """The option that a value of a study stands for."""
        return kept if self.choices is None else self.choices[kept]


def parse_ranges(given: Sequence[str], agent: str) -> dict[str, Range]:
    """Read ``name=range`` texts for the options of an agent.

    Raises:
        UsageError: for an unknown option, or a range that is none.

    Example:
        >>> parse_ranges(["batch=32|64", "k=2..8"], "sentinel")["k"]
        Range(low=2, high=8, log=False, choices=None)
    """
    if not given:
        raise UsageError(f"nothing to vary: give --vary NAME=RANGE, with a range such as {_EXAMPLES}")
    ranges = {}
    for text in given:
        name, sign, told = (part.strip() for part in text.partition("="))
        if not sign:
            raise UsageError(f"--vary {text}: write it as NAME=RANGE, with a range such as {_EXAMPLES}")
        require_known([name], (*agent_kind(agent).options, *PLAN))
        ranges[name] = _numbers(text, told) if ".." in told else _choices(text, name, told, agent)
    return ranges


def _numbers(text: str, told: str) -> Range:
    span, _, scale = told.partition(":")
    low, _, high = span.partition("..")
    ends = parse_value(low), parse_value(high)
    if scale not in ("", "log") or not all(isinstance(end, int | float) for end in ends) or not ends[0] < ends[1]:
        raise UsageError(f"--vary {text}: expected two ascending numbers, such as 0.1..0.9 or 1e-4..1e-2:log")
    if scale == "log" and ends[0] <= 0:
        raise UsageError(f"--vary {text}: a logarithmic range begins above 0")
    return Range(*ends, scale == "log")


def _choices(text: str, name: str, told: str, agent: str) -> Range:
    words = [word.strip() for word in told.split("|")]
    if len(set(words)) < 2 or not all(words):
        raise UsageError(f"--vary {text}: expected at least two choices, such as 32|64, or a range such as {_EXAMPLES}")
    return Range(choices={word: checked_option(agent, name, parse_value(word)) for word in words})
