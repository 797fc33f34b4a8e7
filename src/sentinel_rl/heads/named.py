"""Heads by the names that users give them."""

from collections.abc import Callable, Mapping
from typing import Any, Literal

from sentinel_rl.envs.spec import EnvSpec
from sentinel_rl.errors import UsageError
from sentinel_rl.heads.categorical import CategoricalHead
from sentinel_rl.heads.head import Head
from sentinel_rl.heads.quantile import QuantileHead
from sentinel_rl.heads.support import make_support, range_is_known, require_numbers
from sentinel_rl.returns import Support

HeadName = Literal["auto", "categorical", "quantile"]
# Number of atoms where none is given.
ATOMS = 51


def _categorical(spec: EnvSpec, gamma: float, time_limit: str, atoms: int, **known: Any) -> Head:
    return CategoricalHead(make_support(spec, gamma, time_limit, atoms, **known))


def _quantile(spec: EnvSpec, gamma: float, time_limit: str, atoms: int, **known: Any) -> Head:
    given = [name for name, value in known.items() if value is not None and name != "reward_range"]
    if given:
        raise UsageError(f"head='quantile' has no range of returns: leave out {' and '.join(given)}")
    return QuantileHead(atoms)


# Makes a head for an environment, or raises `UsageError`: another law of the return is one more line.
HEADS: Mapping[str, Callable[..., Head]] = {"categorical": _categorical, "quantile": _quantile}


def make_head(
    head: str | Head,
    spec: EnvSpec,
    gamma: float,
    time_limit: str = "terminal",
    atoms: int | None = None,
    v_min: float | None = None,
    v_max: float | None = None,
    reward_range: tuple[float, float] | None = None,
) -> Head:
    """Make a head by its name.

    Args:
        head: a name of `HEADS`; ``"auto"`` is ``"categorical"`` where the range of returns is known, else
            ``"quantile"``; a `Head` is taken as it is.
        spec: of the environment.
        gamma: discount.
        time_limit: what a time limit does to the return.
        atoms: of the laws, 51 when None.
        v_min: smallest return of a categorical law.
        v_max: largest return of a categorical law.
        reward_range: smallest and largest reward of a step.

    Raises:
        UsageError: for an unknown name, or a range that is needed and not known.

    Example:
        >>> make_head("auto", EnvSpec("Mine", 4, 2), 0.99).outputs
        51
    """
    if isinstance(head, Head):
        return head
    require_numbers(atoms, v_min, v_max, reward_range)
    known: dict[str, Any] = {"v_min": v_min, "v_max": v_max, "reward_range": reward_range}
    if head == "auto":
        head = "categorical" if range_is_known(spec, gamma, time_limit, **known) else "quantile"
        if head == "quantile" and (v_min is not None or v_max is not None):
            head = "categorical"  # half of a range was given: its error says what is missing
    if head not in HEADS:
        raise UsageError(f"unknown head {head!r}: choose one of auto, {', '.join(HEADS)}, or give a sentinel_rl Head")
    return HEADS[head](spec, gamma, time_limit, ATOMS if atoms is None else atoms, **known)


def as_head(given: Head | Support) -> Head:
    """A head; a grid stands for the categorical one on it."""
    return CategoricalHead(given) if isinstance(given, Support) else given
