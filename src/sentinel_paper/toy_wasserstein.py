"""The appendix's toy MDP: how far learned return laws are from the exact ones after n transitions.

Actions are drawn uniformly, so that all agents see data of the same law. SENTINEL-4 is risk-neutral: its estimate is
the mixture of its belief; VDQN's is the law of draws ``Q_theta(s0, a) + noise xi``. The exact laws are

    Z(s0, a0) = .5 N(1, .1^2) + .5 N(.95, .1^2),    Z(s0, a1) = N(.95, .1^2),

0.025 apart in Wasserstein-1 distance. A categorical law on a grid of step dz cannot come nearer than about dz / 4 to a
smooth one: the grid is chosen so that this floor is a tenth of the distance between the two laws. VDQN's noise equals
the true standard deviation by coincidence in the paper; here it is varied.
"""

import csv
import dataclasses
import sys
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from sentinel_rl.agents import make_agent
from sentinel_rl.agents.sentinel import SentinelAgent
from sentinel_rl.agents.vdqn import VDQNAgent
from sentinel_rl.envs import Toy
from sentinel_rl.returns import CategoricalReturn
from sentinel_rl.training import Every, Plan
from sentinel_rl.training.compiled import Training


@dataclasses.dataclass(frozen=True)
class Settings:
    """What is run.

    Args:
        points: numbers of transitions after which the laws are compared.
        seeds: one run of every agent for each.
        noises: observation noises of VDQN.
        low: lower end of SENTINEL's support.
        high: its upper end.
        atoms: its size.
        draws: of VDQN's return.
        learn_every: steps between two updates; 0 data points mean no update.
        options: of all agents.
    """

    points: tuple[int, ...] = (0, 1_000, 5_000, 10_000)
    seeds: tuple[int, ...] = tuple(range(20))
    noises: tuple[float, ...] = (0.02, 0.05, 0.1, 0.2, 0.4)
    low: float = 0.4
    high: float = 1.6
    atoms: int = 121
    draws: int = 10_000
    learn_every: int = 10
    options: tuple[tuple[str, Any], ...] = (("learning_rate", 2.5e-4), ("capacity", 10_000))

    @property
    def floor(self) -> float:
        """What a law on the grid stays away from a smooth one, a quarter of its step."""
        return (self.high - self.low) / (self.atoms - 1) / 4


SETTINGS = Settings()


class Distance(NamedTuple):
    """How far an agent's law of an action was from the exact one; `noise` is 0 for SENTINEL."""

    agent: str
    noise: float
    seed: int
    points: int
    action: int
    distance: float


class Snapshot(NamedTuple):
    """A run after so many transitions."""

    noise: float
    agent: Any
    seed: int
    points: int
    state: Any


def run(settings: Settings = SETTINGS) -> list[Distance]:
    """Train both agents, and compare their laws at every number of transitions."""
    options = dict(settings.options)
    vdqns = [make_agent("vdqn", Toy().spec, **options, use_epsilon=True, noise=noise) for noise in settings.noises]
    return [
        *_compare("sentinel", [(0.0, make_neutral(settings))], settings),
        *_compare("vdqn", list(zip(settings.noises, vdqns, strict=True)), settings),
    ]


def make_neutral(settings: Settings) -> Any:
    """Risk-neutral SENTINEL-4 with a support that fits the laws."""
    neutral = {"aleatory": "expectation", "epistemic": "expectation"}
    grid = {"v_min": settings.low, "v_max": settings.high, "atoms": settings.atoms}
    return make_agent("sentinel", Toy().spec, preset="paper", **dict(settings.options), **neutral, **grid)


def snapshots(agents: Sequence[tuple[float, Any]], settings: Settings) -> Iterator[Snapshot]:
    """Train every agent with every seed on actions drawn uniformly, and show it at every number of transitions."""
    runs = [(noise, agent, seed) for noise, agent in agents for seed in settings.seeds]
    plan = Plan(max(settings.points), Every(settings.learn_every), warmup=100, epsilon_start=1.0, epsilon_end=1.0)
    training = Training([agent for _, agent, _ in runs], Toy(), plan, [seed for *_, seed in runs])
    for point in sorted(settings.points):
        if point > 0:
            for _ in training.chunks(end=point):
                pass
        for one, state in zip(runs, training.agent_states(), strict=True):
            yield Snapshot(*one, point, state)


def _compare(name: str, agents: Sequence[tuple[float, Any]], settings: Settings) -> Iterator[Distance]:
    toy = Toy()
    for noise, agent, seed, point, state in snapshots(agents, settings):
        law = _law(dataclasses.replace(agent, draws=settings.draws) if name == "vdqn" else agent, state)
        for action in range(toy.spec.num_actions):
            found = toy.distance(action, CategoricalReturn(law.atoms[action], law.probs[action]))
            yield Distance(name, noise, seed, point, action, float(found))


@jax.jit
def _law(agent: SentinelAgent | VDQNAgent, state: Any) -> CategoricalReturn:
    """The law of every action in ``s0`` as the agent sees it: atoms and probabilities ``[A, n]``."""
    obs = jnp.array([1.0, 0.0, 0.0])
    if isinstance(agent, VDQNAgent):
        return CategoricalReturn.from_samples(agent.returns(agent.policy(state), obs, jax.random.key(0)).T)
    law = agent.belief(state, obs).mixture()
    return CategoricalReturn(jnp.broadcast_to(law.atoms, law.probs.shape), law.probs)


def main() -> None:
    """Run it as it is, and print one row per agent, noise, seed, number of transitions and action as CSV."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(Distance._fields)
    writer.writerows(run())


if __name__ == "__main__":
    main()
