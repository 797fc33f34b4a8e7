"""Why an agent prefers an action: per action, how much is dice and how much is ignorance."""

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from sentinel_rl.agents.sentinel import SentinelAgent
from sentinel_rl.belief import Belief
from sentinel_rl.nets import Networks
from sentinel_rl.risk import Assessment, Composite, assess

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_NUMBERS = ("mean", "aleatory_penalty", "epistemic_penalty", "composite", "additive", "total", "paper_A", "paper_E")


@dataclasses.dataclass(frozen=True)
class Explanation:
    """A decision with its reasons: K return laws per action, and the decomposition of their composite risk.

    Args:
        belief: the members' laws ``[K, A, n]`` and their FTRL weights ``[K, A]``.
        assessment: its numbers, each ``[A]``.
        measure: the composite risk that is maximised, as text.
        first_action: the number of the first action, in the environment's count.
    """

    belief: Belief
    assessment: Assessment
    measure: str
    first_action: int = 0

    @property
    def action(self) -> int:
        """The action of the highest composite risk."""
        return int(np.argmax(self.assessment.composite)) + self.first_action

    @property
    def actions(self) -> range:
        """The numbers of all actions."""
        return range(self.first_action, self.first_action + self.probs.shape[1])

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
        head, *rows = str(self.assessment).splitlines()
        marked = [
            f"{'>' if action == self.action else ' '} {f'[{action}]':<8}{row[8:]}"
            for action, row in zip(self.actions, rows, strict=True)
        ]
        return "\n".join([f"maximising {self.measure}", f"  {head}", *marked])

    def to_json(self) -> str:
        """Return all of it as JSON."""
        content: dict[str, Any] = {
            "measure": self.measure,
            "action": self.action,
            "actions": list(self.actions),
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

        count = len(self.actions)
        figure = Figure(figsize=(3.2 * count, 3.0), layout="constrained")
        axes = figure.subplots(1, count, sharex=True, sharey=True, squeeze=False)[0]
        for row, (action, axis) in enumerate(zip(self.actions, axes, strict=True)):
            for member in self.probs[:, row]:
                axis.step(self.atoms, member, where="mid", color="#0072B2", alpha=0.5, linewidth=1)
            axis.axvline(float(self.assessment.mean[row]), color="#000000", linestyle=":", label="mean")
            axis.axvline(float(self.assessment.composite[row]), color="#D55E00", label="composite")
            axis.set_title(f"action {action}" + (" (chosen)" if action == self.action else ""))
            axis.set_xlabel("return")
        axes[0].set_ylabel("probability")
        axes[-1].legend(frameon=False)
        if path is not None:
            figure.savefig(path, dpi=150)
        return figure


def explain(
    agent: SentinelAgent, networks: Networks, obs: Float[np.ndarray, " obs"], first_action: int = 0
) -> Explanation:
    """Explain what an agent with these networks prefers at an observation."""
    belief = agent.belief(networks, jnp.asarray(obs))
    composite = Composite(agent.epistemic, agent.aleatory, agent.aggregate)
    # The composite is the one the agent acts on, also where its weights scale values.
    assessment = dataclasses.replace(assess(belief, agent.epistemic, agent.aleatory), composite=composite(belief))
    return Explanation(belief, assessment, str(composite), first_action)
