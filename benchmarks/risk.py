"""Composite CVaR decisions per second on the CPU: sentinel-rl, NumPy, and skfolio called law by law.

A decision is the best of 5 actions by the composite risk CVaR o CVaR of 4 members, each with a law of 51 atoms for
every action. Run it with ``make bench``, or ``python benchmarks/risk.py --help``.
"""

import argparse
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from _measure import best_of, machine

from sentinel_rl.belief import Belief
from sentinel_rl.returns import CategoricalReturn
from sentinel_rl.risk import Composite, CVaR

MEMBERS, ACTIONS, ATOMS = 4, 5, 51
ALPHA_EPISTEMIC, ALPHA_ALEATORY = 0.3, 0.25
LOOPED_STATES = 100  # skfolio takes one law a call: it is timed on so many states, and its rate reported


class Problem(NamedTuple):
    """Laws ``probs[K, states, A, n]`` on common ``atoms[n]`` and a belief ``weights[K, states, A]``."""

    atoms: np.ndarray
    probs: np.ndarray
    weights: np.ndarray

    def astype(self, dtype: type) -> "Problem":
        """The same problem in another precision."""
        return Problem(*(part.astype(dtype) for part in self))

    def head(self, states: int) -> "Problem":
        """The first few states."""
        return Problem(self.atoms, self.probs[:, :states], self.weights[:, :states])


def make_problem(states: int, seed: int = 0) -> Problem:
    """Draw random laws and beliefs."""
    rng = np.random.default_rng(seed)
    probs = rng.standard_exponential((MEMBERS, states, ACTIONS, ATOMS)) ** 3
    weights = rng.standard_exponential((MEMBERS, states, ACTIONS))
    probs /= probs.sum(-1, keepdims=True)
    return Problem(np.linspace(-10.0, 10.0, ATOMS), probs, weights / weights.sum(0))


@jax.jit
def with_sentinel(atoms: jax.Array, probs: jax.Array, weights: jax.Array) -> jax.Array:
    """The library, as a user would call it."""
    measure = Composite(CVaR(ALPHA_EPISTEMIC), CVaR(ALPHA_ALEATORY))
    return measure(Belief(CategoricalReturn(atoms, probs), weights))


def with_numpy(atoms: np.ndarray, probs: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Vectorised NumPy in the form that was fastest among those tried: one running sum, in place, then a product."""
    tail = np.cumsum(probs[..., :-1], axis=-1)
    np.minimum(tail, ALPHA_ALEATORY, out=tail)
    risks = atoms[-1] - tail @ (np.diff(atoms) / ALPHA_ALEATORY).astype(probs.dtype)
    order = np.argsort(risks, axis=0)
    risks, masses = np.take_along_axis(risks, order, axis=0), np.take_along_axis(weights, order, axis=0)
    tail = np.minimum(np.cumsum(masses[:-1], axis=0), ALPHA_EPISTEMIC)
    return risks[-1] - (tail * np.diff(risks, axis=0)).sum(axis=0) / ALPHA_EPISTEMIC


def with_skfolio(cvar: Callable[..., float], problem: Problem) -> np.ndarray:
    """Call ``skfolio.measures.cvar`` for every law, then for every belief; it returns a loss."""
    atoms, probs, weights = problem
    values = np.empty(probs.shape[1:-1])
    for place in np.ndindex(values.shape):
        risks = np.array(
            [-cvar(atoms, beta=1 - ALPHA_ALEATORY, sample_weight=probs[(i, *place)]) for i in range(MEMBERS)]
        )
        values[place] = -cvar(risks, beta=1 - ALPHA_EPISTEMIC, sample_weight=weights[(slice(None), *place)])
    return values


def load_skfolio() -> Callable[..., float] | None:
    """Return skfolio's CVaR, or None where it is not installed."""
    try:
        from skfolio.measures import cvar
    except ImportError:
        return None
    return cvar


def require_equal(name: str, values: np.ndarray, reference: np.ndarray, tolerance: float) -> None:
    """Stop unless two implementations agree."""
    error = float(np.abs(np.asarray(values, np.float64) - reference).max())
    if not error <= tolerance:
        raise SystemExit(f"{name} is off by {error:.2g} (allowed: {tolerance:g}): nothing was timed")
    print(f"  {name:<28} agrees within {error:.1e}")


def main() -> None:
    """Check that all implementations agree, time them, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--states", type=int, default=100_000, help="decisions per run (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=7, help="the best of so many runs counts (default: %(default)s)")
    arguments = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_platforms", "cpu")

    wide = make_problem(arguments.states)
    few, narrow, cvar = wide.head(LOOPED_STATES), wide.astype(np.float32), load_skfolio()
    on_device = {np.float32: [jnp.asarray(part) for part in narrow], np.float64: [jnp.asarray(part) for part in wide]}

    print(f"composite CVaR, [{arguments.states} states, K {MEMBERS}, A {ACTIONS}, {ATOMS} atoms]")
    print(machine("jax", "numpy", "skfolio"))
    print("\nagainst NumPy in float64, returns in [-10, 10]:")
    reference = with_numpy(*wide)
    require_equal("sentinel-rl float64", with_sentinel(*on_device[np.float64]), reference, 1e-11)
    require_equal("sentinel-rl float32", with_sentinel(*on_device[np.float32]), reference, 1e-4)
    require_equal("NumPy float32", with_numpy(*narrow), reference, 1e-4)
    if cvar is not None:
        require_equal("skfolio float64", with_skfolio(cvar, few), reference[: few.probs.shape[1]], 1e-11)

    decide = jax.jit(lambda *problem: jnp.argmax(with_sentinel(*problem), axis=-1))
    tasks: dict[str, Callable[[], object]] = {
        "sentinel-rl float32": lambda: decide(*on_device[np.float32]).block_until_ready(),
        "sentinel-rl float64": lambda: decide(*on_device[np.float64]).block_until_ready(),
        "NumPy float32": lambda: with_numpy(*narrow).argmax(-1),
        "NumPy float64": lambda: with_numpy(*wide).argmax(-1),
    }
    decisions = dict.fromkeys(tasks, arguments.states)
    if cvar is not None:
        tasks["skfolio float64"] = lambda: with_skfolio(cvar, few).argmax(-1)
        decisions["skfolio float64"] = few.probs.shape[1]
    seconds = best_of(arguments.rounds, tasks)
    report({name: decisions[name] / seconds[name] for name in tasks}, arguments.rounds)


def report(rates: dict[str, float], rounds: int) -> None:
    """Print decisions per second and their ratios."""
    print(f"\nwarm-up excluded, best of {rounds}, taking turns:")
    for name, rate in rates.items():
        print(f"  {name:<28} {rate:>12,.0f} decisions/s")
    print("\nratios:")
    for precision in ("float32", "float64"):
        ratio = rates[f"sentinel-rl {precision}"] / rates[f"NumPy {precision}"]
        print(f"  sentinel-rl / NumPy, {precision} {ratio:>12.2f}   (goal: above 1)")
    print(f"  sentinel-rl float32 / float64 {rates['sentinel-rl float32'] / rates['sentinel-rl float64']:>10.2f}")
    if "skfolio float64" in rates:
        ratio = rates["sentinel-rl float64"] / rates["skfolio float64"]
        print(f"  sentinel-rl / skfolio, float64 {ratio:>9.0f}   (goal: at least 20)")
        print(f"  skfolio takes one weighted law a call: it was timed on the first {LOOPED_STATES} states")
    else:
        print("  skfolio is not installed, so it was not compared: pip install skfolio, or run `make bench`")


if __name__ == "__main__":
    main()
