"""Why an agent prefers an action: per action, how much is dice and how much is ignorance.

The words stand here once: the terminal prints them, and the page of `sentinel_rl.viewer` is given the same ones.
"""

import abc
import dataclasses
import json
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jaxtyping import Array, Float

from sentinel_rl.agents.agent import Account, Agent
from sentinel_rl.belief import Belief
from sentinel_rl.envs.handle import EnvHandle
from sentinel_rl.errors import UsageError
from sentinel_rl.returns.projection import common_grid, on_grid
from sentinel_rl.risk import Assessment, assess

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_NUMBERS = ("mean", "aleatory_penalty", "epistemic_penalty", "composite", "additive", "total", "paper_A", "paper_E")


# Of the grid on which laws with atoms of their own are drawn.
_DRAWN_ATOMS = 51
# Of a terminal.
_COLUMNS = 80
_LOWEST, _HIGHEST = 5e-4, 100.0

# What is said of a decision; `{...}` is filled in by `told_in_words`, in Python and in the page alike.
WORDS: Mapping[str, str] = {
    "mean": "mean",
    "chance": "chance",
    "ignorance": "ignorance",
    "value": "value",
    "decision": "{best}, by {margin} over {second}: chance costs {chance}, ignorance {ignorance}",
    "decision_without_laws": "{best}, by {margin} over {second}",
    "only_action": "{best}: chance costs {chance}, ignorance {ignorance}",
    "only_action_without_laws": "{best}, the only action there is",
    "why_not": "{other} is worth {margin} less: its mean is {mean}, chance costs {chance}, ignorance {ignorance}",
    "why_not_without_laws": "{other} is worth {margin} less",
    "higher": "{number} higher",
    "lower": "{number} lower",
    "more": "{number} more",
    "less": "{number} less",
    "the_same": "the same",
}


def told_in_words(name: str, **entries: str | float) -> str:
    """Fill in one of the `WORDS`; numbers are shortened by `short_number`.

    Example:
        >>> told_in_words("decision_without_laws", best="FASTER", margin=0.4123, second="IDLE")
        'FASTER, by 0.41 over IDLE'
    """
    told = {key: short_number(entry) if isinstance(entry, float) else entry for key, entry in entries.items()}
    return WORDS[name].format(**told)


def short_number(number: float) -> str:
    """A number for a sentence: two digits that count, whole ones from 100 on, and 0 below 0.0005.

    Example:
        >>> [short_number(number) for number in (0.40, 1.234, 12.34, 123.4, 0.0567, -0.00001)]
        ['0.4', '1.2', '12', '123', '0.057', '0']
    """
    if not np.isfinite(number):
        return str(number)
    if abs(number) < _LOWEST:
        return "0"
    return f"{number:.0f}" if abs(number) >= _HIGHEST else f"{float(f'{number:.2g}'):.6f}".rstrip("0").rstrip(".")


class Decision(abc.ABC):
    """A decision with its reasons; ``str`` gives a table with a row per action, and the decision in one sentence.

    Attributes:
        measure: what is maximised, as text.
        note: what the agent cannot tell, or how its numbers are to be read; empty where nothing must be said.
        first_action: the number of the first action, in the environment's count.
        action_names: what the actions are called; their numbers when None.
    """

    measure: str
    note: str
    first_action: int
    action_names: tuple[str, ...] | None

    @property
    @abc.abstractmethod
    def value(self) -> Float[np.ndarray, " A"]:
        """What is maximised, of every action."""

    @abc.abstractmethod
    def to_json(self) -> str:
        """Return all of it as JSON."""

    @abc.abstractmethod
    def plot(self, path: str | Path | None = None) -> "Figure":
        """Draw it; saves it where a path is given."""

    @property
    def sentence(self) -> str:
        """The decision in one sentence: what is preferred, by how much, and over what."""
        best, margin, second = self._best_two()
        if second is None:
            return told_in_words("only_action_without_laws", best=best)
        return told_in_words("decision_without_laws", best=best, margin=margin, second=second)

    def why_not(self, action: int) -> str:
        """What speaks against an action, in one sentence."""
        other, margin = self._against(action)
        return told_in_words("why_not_without_laws", other=other, margin=margin)

    def _best_two(self) -> tuple[str, float, str | None]:
        """The preferred action, by how much, and the one after it, if there is one."""
        first, *others = (int(row) for row in np.argsort(-self.value, kind="stable"))
        if not others:
            return self.labels[first], 0.0, None
        return self.labels[first], float(self.value[first] - self.value[others[0]]), self.labels[others[0]]

    def _against(self, action: int) -> tuple[str, float]:
        """The name of an action, and how much less it is worth than the best."""
        if action not in self.actions:
            raise UsageError(f"action {action} does not exist: choose one of {', '.join(map(str, self.actions))}")
        row = action - self.first_action
        return self.labels[row], float(np.max(self.value) - self.value[row])

    @property
    def action(self) -> int:
        """The action of the highest value."""
        return int(np.argmax(self.value)) + self.first_action

    @property
    def actions(self) -> range:
        """The numbers of all actions."""
        return range(self.first_action, self.first_action + len(self.value))

    @property
    def labels(self) -> list[str]:
        """The names of all actions, or their numbers in brackets where they have none."""
        return list(self.action_names) if self.action_names else [f"[{action}]" for action in self.actions]

    def _table(self, head: str, rows: list[str]) -> str:
        """One row per action; the chosen one is marked."""
        width = max(8, *(len(label) + 1 for label in self.labels))
        marked = [
            f"{'>' if action == self.action else ' '} {label:<{width}}{row}"
            for action, label, row in zip(self.actions, self.labels, rows, strict=True)
        ]
        lines = [f"maximising {self.measure}", f"  {' ' * width}{head}", *marked]
        told = [self.sentence, self.note] if self.note else [self.sentence]
        return "\n".join([*lines, *(line for text in told for line in textwrap.wrap(text, _COLUMNS))])

    def _common(self) -> dict[str, Any]:
        content = {"measure": self.measure, "action": self.action, "actions": list(self.actions)}
        content |= {"action_names": list(self.action_names)} if self.action_names else {}
        return content | ({"note": self.note} if self.note else {})

    def _axes(self, figure: "Figure", size: int) -> list[Any]:
        """One picture per action, the chosen one named."""
        figure.set_size_inches(3.2 * size, 3.0)
        axes = list(figure.subplots(1, size, sharex=True, sharey=True, squeeze=False)[0])
        titles = self.action_names or [f"action {action}" for action in self.actions]
        for action, title, axis in zip(self.actions, titles, axes, strict=True):
            axis.set_title(title + (" (chosen)" if action == self.action else ""))
            axis.set_xlabel("return")
        return axes


@dataclasses.dataclass(frozen=True)
class Explanation(Decision):
    """A decision with its reasons: K return laws per action, and the decomposition of their composite risk.

    Args:
        belief: the members' laws ``[K, A, n]`` and their FTRL weights ``[K, A]``.
        assessment: its numbers, each ``[A]``.
        measure: the composite risk that is maximised, as text.
        note: what cannot be told.
        first_action: the number of the first action, in the environment's count.
        action_names: what the actions are called.
    """

    belief: Belief
    assessment: Assessment
    measure: str
    note: str = ""
    first_action: int = 0
    action_names: tuple[str, ...] | None = None

    @property
    def value(self) -> Float[np.ndarray, " A"]:
        """The composite risk of every action."""
        return np.asarray(self.assessment.composite)

    @property
    def atoms(self) -> Float[np.ndarray, "... n"]:
        """The returns on which the laws stand: one grid ``[n]`` for all, or ``[K, A, n]`` where each has its own."""
        return np.asarray(self.belief.members.atoms)

    @property
    def probs(self) -> Float[np.ndarray, "K A n"]:
        """The members' laws of the return of every action."""
        return np.asarray(self.belief.members.probs)

    def __str__(self) -> str:
        """Return a table with one row per action and the decision in a sentence; the chosen one is marked."""
        why = self.assessment
        columns = {
            "mean": why.mean,
            "chance": why.aleatory_penalty,
            "ignorance": why.epistemic_penalty,
            "value": why.composite,
        }
        return self._table(*_aligned({WORDS[name]: np.asarray(column) for name, column in columns.items()}))

    @property
    def sentence(self) -> str:
        """The decision in one sentence, with what chance and ignorance cost the preferred action."""
        best, margin, second = self._best_two()
        row = int(np.argmax(self.value))
        chance, ignorance = self._penalties(row)
        if second is None:
            return told_in_words("only_action", best=best, chance=chance, ignorance=ignorance)
        return told_in_words("decision", best=best, margin=margin, second=second, chance=chance, ignorance=ignorance)

    def why_not(self, action: int) -> str:
        """What speaks against an action, in one sentence: its mean and its penalties, against the best one's."""
        other, margin = self._against(action)
        row, best = action - self.first_action, int(np.argmax(self.value))
        means = float(self.assessment.mean[row] - self.assessment.mean[best])
        chance, ignorance = (mine - its for mine, its in zip(self._penalties(row), self._penalties(best), strict=True))
        return told_in_words(
            "why_not",
            other=other,
            margin=margin,
            mean=_compared(means, "higher", "lower"),
            chance=_compared(chance, "more", "less"),
            ignorance=_compared(ignorance, "more", "less"),
        )

    def _penalties(self, row: int) -> tuple[float, float]:
        return float(self.assessment.aleatory_penalty[row]), float(self.assessment.epistemic_penalty[row])

    def to_json(self) -> str:
        """Return all of it as JSON."""
        content = self._common() | {
            "atoms": self.atoms.tolist(),
            "probs": self.probs.tolist(),
            "weights": np.asarray(self.belief.weights).tolist(),
            "member_risks": np.asarray(self.assessment.member_risks).tolist(),
        }
        content |= {name: np.asarray(getattr(self.assessment, name)).tolist() for name in _NUMBERS}
        return json.dumps(content)

    def plot(self, path: str | Path | None = None) -> "Figure":
        """Draw every action's K laws with its mean and composite risk; saves it where a path is given."""
        from matplotlib.figure import Figure

        figure = Figure(layout="constrained")
        axes = self._axes(figure, len(self.actions))
        atoms, probs = self.atoms, self.probs
        if atoms.ndim > 1:
            grid = common_grid(self.belief.members, _DRAWN_ATOMS)
            atoms, probs = np.asarray(grid.atoms), on_grid(self.belief.members, grid)
        for row, axis in enumerate(axes):
            for member in probs[:, row]:
                axis.step(atoms, member, where="mid", color="#0072B2", alpha=0.5, linewidth=1)
            axis.axvline(float(self.assessment.mean[row]), color="#000000", linestyle=":", label="mean")
            axis.axvline(float(self.assessment.composite[row]), color="#D55E00", label="composite")
        axes[0].set_ylabel("probability")
        axes[-1].legend(frameon=False)
        if path is not None:
            figure.savefig(path, dpi=150)
        return figure


@dataclasses.dataclass(frozen=True)
class Estimates(Decision):
    """What an agent can tell that has numbers for every action, and no laws.

    Args:
        account: what is maximised, what it comes from, each ``[A]``, and draws of it ``[draws, A]`` if there are some.
        measure: what is maximised, as text.
        note: what cannot be told.
        first_action: the number of the first action, in the environment's count.
        action_names: what the actions are called.
    """

    account: Account
    measure: str
    note: str
    first_action: int = 0
    action_names: tuple[str, ...] | None = None

    @property
    def draws(self) -> Float[np.ndarray, "draws A"] | None:
        """Draws of the value of every action, where the agent samples it."""
        return None if self.account.draws is None else np.asarray(self.account.draws)

    @property
    def value(self) -> Float[np.ndarray, " A"]:
        """What is maximised, of every action."""
        return np.asarray(self.account.value)

    def __str__(self) -> str:
        """Return a table with one row per action and the decision in a sentence; the chosen one is marked."""
        columns = {"value": self.value} | {name: np.asarray(part) for name, part in self.account.parts.items()}
        return self._table(*_aligned(columns))

    def to_json(self) -> str:
        """Return all of it as JSON."""
        numbers = {"value": self.value.tolist()}
        numbers |= {name: np.asarray(part).tolist() for name, part in self.account.parts.items()}
        drawn = {} if self.draws is None else {"draws": self.draws.tolist()}
        return json.dumps(self._common() | numbers | drawn)

    def plot(self, path: str | Path | None = None) -> "Figure":
        """Draw every action's value, its draws where there are some, and its standard deviations."""
        from matplotlib.figure import Figure

        figure = Figure(layout="constrained")
        axes = self._axes(figure, len(self.actions))
        for row, axis in enumerate(axes):
            if self.draws is not None:
                axis.hist(self.draws[:, row], bins=20, color="#0072B2", alpha=0.5, label="draws of the value")
            centre = float(self.account.parts.get("mean", self.account.value)[row])
            for level, name in enumerate(("epistemic_sd", "aleatory_sd"), start=1):
                spread = float(self.account.parts[name][row]) if name in self.account.parts else 0.0
                axis.plot([centre - spread, centre + spread], [-level, -level], label=f"mean ± {name}")
            axis.axvline(float(self.value[row]), color="#D55E00", label="value")
        axes[-1].legend(frameon=False)
        if path is not None:
            figure.savefig(path, dpi=150)
        return figure


def explain(agent: Agent, state: Any, obs: Float[np.ndarray, " obs"], handle: EnvHandle) -> Decision:
    """Explain what an agent prefers at an observation: with its laws where it has a belief, else with its numbers.

    Args:
        agent: the agent.
        state: its state; one made by ``agent.with_policy`` will do.
        obs: one observation, flat.
        handle: of the environment, for the numbers and names of the actions.
    """
    first, names = handle.first_action, handle.spec.action_names
    if has_laws(agent):
        belief, assessment = _assess(agent, state, obs)
        return Explanation(belief, assessment, agent.objective, agent.caveat, first, names)
    account = jax.tree.map(np.asarray, _account(agent, state, obs))
    return Estimates(account, agent.objective, agent.caveat, first, names)


def has_laws(agent: Agent) -> bool:
    """Whether an agent has laws of the return, a belief over them and a composite risk of it."""
    return hasattr(agent, "belief") and hasattr(agent, "composite")


def assess_laws(agent: Any, state: Any, obs: Float[Array, " obs"]) -> tuple[Belief, Assessment]:
    """The belief of an agent that has laws at one observation, and its decomposed risk; to be compiled and mapped."""
    belief, composite = agent.belief(state, obs), agent.composite
    # The composite is the one the agent acts on, also where its weights scale values.
    told = assess(belief, composite.epistemic, composite.aleatory)
    return belief, dataclasses.replace(told, composite=composite(belief))


_assess = jax.jit(assess_laws)


@jax.jit
def _account(agent: Any, state: Any, obs: Any) -> Account:
    told: Account = agent.account(state, obs)
    return told


def _aligned(columns: Mapping[str, np.ndarray]) -> tuple[str, list[str]]:
    """The head of a table and its rows, right-aligned."""
    width = max(9, *map(len, columns)) + 1
    rows = ["".join(f"{number:>{width}.4g}" for number in row) for row in zip(*columns.values(), strict=True)]
    return "".join(f"{name:>{width}}" for name in columns), rows


def _compared(difference: float, above: str, below: str) -> str:
    """How much more or less, in words."""
    if abs(difference) < _LOWEST:
        return told_in_words("the_same")
    return told_in_words(above if difference > 0 else below, number=abs(difference))
