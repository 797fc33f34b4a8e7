"""The pace of many runs side by side: seconds for 1 000 decisions once all is compiled, and what a GPU does meanwhile.

    python benchmarks/pace.py --runs 30
    python benchmarks/pace.py --runs 10 --risks cvar:1 cvar:0.5 cvar:0.25
    python benchmarks/pace.py --agent vdqn --env sentinel/CartPole-v0 --runs 50 --kernels 20

All runs have the library's default learner and are one compiled program, those of several measures of risk too. With
``--kernels N`` the N kernels are listed that a GPU spends most of its time in, from a trace of the last decisions: a
kernel that is called more often than there are decisions or updates stands in a loop.
"""

import argparse
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import jax
from _measure import machine

from sentinel_rl.compilation import use_compilation_cache
from sentinel_rl.study import Cell
from sentinel_rl.study.batching import plan_of
from sentinel_rl.training.compiled import Training, chunks_together

# A plan's own steps decide its warm-up and its epsilon; few of them are made.
PLANNED = 100_000


def advance(trainings: Sequence[Training], end: int) -> float:
    """Make the steps up to `end`, and return the seconds."""
    begin = time.perf_counter()
    for _ in chunks_together(trainings, end=end):
        pass
    jax.block_until_ready([group.runs for training in trainings for group in training.groups])
    return time.perf_counter() - begin


def kernels(folder: Path) -> dict[str, tuple[float, int]]:
    """Milliseconds and calls of every kernel in the trace of a GPU."""
    (file,) = folder.rglob("*.xplane.pb")
    found: dict[str, list[float]] = defaultdict(list)
    for plane in jax.profiler.ProfileData.from_file(str(file)).planes:
        if "GPU" in plane.name:
            for line in plane.lines:
                if line.name.startswith("Stream"):
                    for event in line.events:
                        found[event.name].append(event.duration_ns / 1e6)
    return {name: (sum(times), len(times)) for name, times in found.items()}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agent", default="sentinel")
    parser.add_argument("--env", default="sentinel/highway-v1")
    parser.add_argument("--runs", type=int, default=30, help="of every measure")
    parser.add_argument("--risks", nargs="*", help="of SENTINEL, aleatory and epistemic alike")
    parser.add_argument("--steps", type=int, default=2_000, help="that are timed, after half as many that are not")
    parser.add_argument("--kernels", type=int, default=0, help="how many to list")
    given = parser.parse_args()
    use_compilation_cache()
    print(machine("jax"), jax.devices()[0].device_kind, sep="; ")
    seeds = tuple(range(given.runs))
    risks = [{"aleatory": risk, "epistemic": risk} for risk in given.risks or ()] or [{}]
    cells = [Cell(given.agent, given.env, PLANNED, seeds, {"preset": "learner", **risk}) for risk in risks]
    env = cells[0].make_env()
    agents = [cell.make_agent(env) for cell in cells]
    plan = plan_of(cells, agents)
    training = [Training([agent] * given.runs, env, plan, seeds) for agent in agents]
    first = plan.warmup + given.steps // 2
    compiling = advance(training, first)
    seconds = advance(training, first + given.steps)
    pace = 1_000 * seconds / given.steps
    print(f"{given.agent}, {given.env}, {len(cells)} x {given.runs} runs:")
    print(f"{compiling:.0f} s with compiling to step {first}, then")
    print(f"{pace:.2f} s for 1 000 decisions of each: {pace * PLANNED / 1_000:.0f} s for {PLANNED:,}")
    if given.kernels:
        with tempfile.TemporaryDirectory() as folder:
            with jax.profiler.trace(folder):
                advance(training, first + given.steps + 200)
            told = kernels(Path(folder))
        if not told:
            sys.exit("the trace names no GPU: kernels are listed on a GPU only")
        whole = sum(milliseconds for milliseconds, _ in told.values())
        for name, (milliseconds, calls) in sorted(told.items(), key=lambda one: -one[1][0])[: given.kernels]:
            print(f"{milliseconds / whole:6.1%} {milliseconds:9.2f} ms {calls:7d} calls  {name}")


if __name__ == "__main__":
    main()
