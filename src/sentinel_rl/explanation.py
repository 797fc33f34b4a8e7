"""Why an agent prefers an action: per action, how much is dice and how much is ignorance."""

import abc
import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from sentinel_rl.agents.agent import Account
from sentinel_rl.agents.sentinel import SentinelAgent
from sentinel_rl.belief import Belief
from sentinel_rl.nets import Networks
from sentinel_rl.risk import Assessment, Composite, assess

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_NUMBERS = ("mean", "aleatory_penalty", "epistemic_penalty", "composite", "additive", "total", "paper_A", "paper_E")


class Decision(abc.ABC):
    """A decision with its reasons; ``str`` gives a table with a row per action.

    Attributes:
        measure: what is maximised, as text.
        note: what the agent cannot tell, or how its numbers are to be read; empty where nothing must be said.
        first_action: the number of the first action, in the environment's count.
    """

    measure: str
    note: str
    first_action: int

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

    def _table(self, head: str, rows: list[str]) -> str:
        """One row per action; the chosen one is marked."""
        marked = [
            f"{'>' if action == self.action else ' '} {f'[{action}]':<8}{row}"
            for action, row in zip(self.actions, rows, strict=True)
        ]
        lines = [f"maximising {self.measure}", f"  {' ' * 8}{head}", *marked]
        return "\n".join([*lines, self.note] if self.note else lines)

    def _common(self) -> dict[str, Any]:
        content = {"measure": self.measure, "action": self.action, "actions": list(self.actions)}
        return content | ({"note": self.note} if self.note else {})

    def _axes(self, figure: "Figure", size: int) -> list[Any]:
        """One picture per action, the chosen one named."""
        figure.set_size_inches(3.2 * size, 3.0)
        axes = list(figure.subplots(1, size, sharex=True, sharey=True, squeeze=False)[0])
        for action, axis in zip(self.actions, axes, strict=True):
            axis.set_title(f"action {action}" + (" (chosen)" if action == self.action else ""))
            axis.set_xlabel("return")
        return axes


@dataclasses.dataclass(frozen=True)
class Explanation(Decision):
    """A decision with its reasons: K return laws per action, and the decomposition of their composite risk.

    Args:
        belief: the members' laws ``[K, A, n]`` and their FTRL weights ``[K, A]``.
        assessment: its numbers, each ``[A]``.
        measure: the composite risk that is maximised, as text.
        first_action: the number of the first action, in the environment's count.
        note: what cannot be told.
    """

    belief: Belief
    assessment: Assessment
    measure: str
    first_action: int = 0
    note: str = ""

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
        account: what is maximised, and what it comes from, each ``[A]``.
        draws: of the value of every action ``[draws, A]``, where there are such.
        measure: what is maximised, as text.
        note: what cannot be told.
        first_action: the number of the first action, in the environment's count.
    """

    account: Account
    draws: Float[np.ndarray, "draws A"] | None
    measure: str
    note: str
    first_action: int = 0

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


def explain(
    agent: SentinelAgent, networks: Networks, obs: Float[np.ndarray, " obs"], first_action: int = 0, note: str = ""
) -> Explanation:
    """Explain what an agent with these networks prefers at an observation."""
    belief = agent.belief(networks, jnp.asarray(obs))
    composite = Composite(agent.epistemic, agent.aleatory, agent.aggregate)
    # The composite is the one the agent acts on, also where its weights scale values.
    assessment = dataclasses.replace(assess(belief, agent.epistemic, agent.aleatory), composite=composite(belief))
    return Explanation(belief, assessment, str(composite), first_action, note)
