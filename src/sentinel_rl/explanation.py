"""Why an agent prefers an action: per action, how much is dice and how much is ignorance."""

import abc
import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jaxtyping import Float

from sentinel_rl.agents.agent import Account, Agent
from sentinel_rl.belief import Belief
from sentinel_rl.envs.handle import EnvHandle
from sentinel_rl.risk import Assessment, assess

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_NUMBERS = ("mean", "aleatory_penalty", "epistemic_penalty", "composite", "additive", "total", "paper_A", "paper_E")


class Decision(abc.ABC):
    """A decision with its reasons; ``str`` gives a table with a row per action.

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
        return "\n".join([*lines, self.note] if self.note else lines)

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
    def atoms(self) -> Float[np.ndarray, " n"]:
        """The returns on which the laws stand."""
        return np.asarray(self.belief.members.atoms)

    @property
    def probs(self) -> Float[np.ndarray, "K A n"]:
        """The members' laws of the return of every action."""
        return np.asarray(self.belief.members.probs)

    def __str__(self) -> str:
        """Return a table with one row per action; the chosen one is marked."""
        head, *rows = (line[8:] for line in str(self.assessment).splitlines())
        return self._table(head, rows)

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
        for row, axis in enumerate(axes):
            for member in self.probs[:, row]:
                axis.step(self.atoms, member, where="mid", color="#0072B2", alpha=0.5, linewidth=1)
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
        """Return a table with one row per action; the chosen one is marked."""
        columns = {"value": self.value} | {name: np.asarray(part) for name, part in self.account.parts.items()}
        width = max(map(len, columns)) + 1
        rows = ["".join(f"{column[a]:>{width}.4g}" for column in columns.values()) for a in range(len(self.value))]
        return self._table("".join(f"{name:>{width}}" for name in columns), rows)

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
    if hasattr(agent, "belief") and hasattr(agent, "composite"):
        belief, assessment = _assess(agent, state, obs)
        return Explanation(belief, assessment, agent.objective, agent.caveat, first, names)
    account = jax.tree.map(np.asarray, _account(agent, state, obs))
    return Estimates(account, agent.objective, agent.caveat, first, names)


@jax.jit
def _assess(agent: Any, state: Any, obs: Any) -> tuple[Belief, Assessment]:
    belief, composite = agent.belief(state, obs), agent.composite
    # The composite is the one the agent acts on, also where its weights scale values.
    told = assess(belief, composite.epistemic, composite.aleatory)
    return belief, dataclasses.replace(told, composite=composite(belief))


@jax.jit
def _account(agent: Any, state: Any, obs: Any) -> Account:
    told: Account = agent.account(state, obs)
    return told
