"""Why do quantiles crash more than a grid while an agent begins to learn? The first decisions on the highway.

    python benchmarks/quantile_start.py --runs 6

One risk-neutral network (K = 1) with the learner's options for 100 000 decisions, of which the first 10 000 are made.
The arms differ in what the networks believe before they have learnt anything, and in how fast beliefs travel back from
one decision to the one before: a grid's first law is uniform over the possible returns, with a mean of 10, and
quantiles begin at 0.
"""

import argparse
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from _measure import machine

import sentinel_rl as srl
from sentinel_rl.agents.sentinel import SentinelAgent, SentinelState
from sentinel_rl.envs.spec import EnvSpec
from sentinel_rl.study import summarise
from sentinel_rl.training.population import use_all_cores

ENV = "sentinel/highway-v1"
STEPS = 10_000
# As in a training of 100 000 decisions: 1 000 random ones, then epsilon declines over 2 % of the rest.
PLAN = {"warmup": 1_000, "epsilon_fraction": 1_980 / (STEPS - 1_000)}
NEUTRAL = {"k": 1, "mask_rate": 1.0, "aleatory": "expectation", "epistemic": "expectation"}
# What is added to every output at first, for outputs from the lowest to the highest.
BIASES: Mapping[str, Any] = {
    "as drawn": lambda n: np.zeros(n),
    "mean 10": lambda n: np.full(n, 10.0),
    "mean near 0": lambda n: -np.arange(n, dtype=float),
    "mean near 20": lambda n: np.arange(n, dtype=float),
}
# The head, what the networks believe at first, and other options.
ARMS: Mapping[str, tuple[str, str, Mapping[str, Any]]] = {
    "grid, begins uniform (mean 10)": ("categorical", "as drawn", {}),
    "grid, begins near 0": ("categorical", "mean near 0", {}),
    "grid, begins near 20": ("categorical", "mean near 20", {}),
    "quantiles, begin at 0": ("quantile", "as drawn", {}),
    "quantiles, begin at 10": ("quantile", "mean 10", {}),
    "quantiles, begin at 0, target copied every 100 updates": ("quantile", "as drawn", {"target_every": 100}),
    "grid, begins near 0, target copied every 100 updates": ("categorical", "mean near 0", {"target_every": 100}),
}


class Beginning(SentinelAgent):
    """SENTINEL whose networks begin with another belief.

    Args:
        bias: a name of `BIASES`.
    """

    bias: str = eqx.field(static=True, default="as drawn", kw_only=True)

    def init(self, spec: EnvSpec, key: jax.Array) -> SentinelState:
        """Draw the networks, and add to their last biases."""
        state = super().init(spec, key)
        added = jnp.asarray(np.tile(BIASES[self.bias](self.head.outputs), spec.num_actions), jnp.float32)
        return eqx.tree_at(lambda s: (s.online.bias, s.target.bias), state, (state.online.bias + added,) * 2)


def agent_of(arm: str) -> Beginning:
    """The agent of an arm."""
    head, bias, changes = ARMS[arm]
    # The options that the learner changes for quantiles stay those of the grid: only what the arm names differs.
    same = {"n_step": 1, "target_every": 500, "explore": "ensemble"}
    made = srl.make_agent("sentinel", srl.make_env(ENV), head=head, **{**NEUTRAL, **same, **changes})
    return Beginning(**{name: getattr(made, name) for name in made.__dataclass_fields__}, bias=bias)


def main() -> None:
    """Train, and print the crashes of every arm."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=6)
    parser.add_argument("--seed", type=int, default=300)
    parser.add_argument("--only", nargs="*", choices=ARMS, default=list(ARMS), help="arms")
    given = parser.parse_args()
    use_all_cores()
    print(machine("jax"), flush=True)
    runs = f"seeds {given.seed} to {given.seed + given.runs - 1}"
    print(f"| {STEPS} decisions, {runs} | crashes | of these in the second half |")
    print("| --- | ---: | ---: |")
    for arm in given.only:
        seeds = range(given.seed, given.seed + given.runs)
        plan = {**PLAN, "learn_every": 2, "epsilon_end": 0.01, "longest_bout": None}
        result = srl.train(agent_of(arm), ENV, STEPS, seeds, points=2, reports=False, **plan)
        half, whole = np.asarray(result.curves["terminations"], float).T
        cells = [summarise(values, worse="high") for values in (whole, whole - half)]
        told = " | ".join(f"{one.mean:.1f} [{one.low:.1f}, {one.high:.1f}]" for one in cells)
        print(f"| {arm} | {told} |", flush=True)


if __name__ == "__main__":
    main()
