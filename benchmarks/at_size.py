"""All that `--preset tuned` and the study of caution train, at size, on one GPU: processes side by side.

    python benchmarks/at_size.py run --records results/records
    python benchmarks/at_size.py run --records results/records --lanes table-sentinel table-cdqn
    python benchmarks/at_size.py show

A program of the highway compiles for a minute or more, most of it on one core, and a training of few runs leaves a
GPU waiting for its launches. Therefore every lane is a process of its own, which computes some of the cells that
`sentinel reproduce` asks for, and puts their records where that command finds them: afterwards `sentinel reproduce
NAME --preset tuned --runs 50 --seed 3000 --records DIR` only writes its page. What has a record is not computed
again, and a cell that was stopped begins anew, or with `--at-once N` at the N runs where it stopped. Where NVIDIA's
multi-process service is installed, it is started for these processes: the longest lanes come first, and the others
get a part of the multiprocessors each. The seconds that records tell are those of a shared GPU. ``--quick`` makes
everything tiny: it shows that all parts work.

Processes that share a GPU by this service share its fate: when one is killed while it computes, all the others fail
with an illegal memory access. One signal lets a process end after its chunk; a second one kills it, and with it
everything that is not yet a record. To leave something out, name the lanes that are wanted.
"""

import argparse
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

# Seconds between two checkpoints of a cell: a checkpoint of all replays takes as long as a good part of the training.
NEVER = 1e9
MPS = "nvidia-cuda-mps-control"
RUNS, SEED = 50, 3_000
# What the names of the pieces of the study of caution begin with, and how many there are.
CAUTION, PIECES = "caution-", 5


class Lane(NamedTuple):
    """A process: the names of its parts in their order, its share of the GPU in percent, and how nice it is."""

    parts: tuple[str, ...]
    share: int
    niceness: int


# A million steps one after the other are the longest that there is, and wait for nobody: what they compute at once is
# little, and the others leave multiprocessors free. All lanes at once take more than 25 minutes on an H200: name those
# that are wanted (`--lanes`).
LANES = (
    *(Lane((f"long-{name}",), 100, 0) for name in ("sentinel", "cdqn", "vdqn", "vdqn-cvar", "uadqn")),
    Lane(("table-sentinel", "size-8", "size-1-2"), 35, 2),
    Lane(("caution-2", "caution-4", "caution-5"), 30, 2),
    Lane(("caution-1", "caution-3"), 25, 2),
    Lane(("table-vdqn", "table-cdqn", "pole-lambda"), 12, 5),
    Lane(("table-vdqn-cvar", "table-uadqn", "pole-sizes", "pole-risk"), 12, 5),
    Lane(("table-references", "long-references"), 10, 7),
)


def cells_of(quick: bool) -> dict[str, tuple[Sequence[Any], bool]]:
    """The cells of every part by its name, and whether each is computed by itself, to measure its seconds."""
    from sentinel_paper import fig_ftrl_lambda, fig_highway_crashes, fig_risk_measures, table_ensemble_size, trained
    from sentinel_paper.highway_agents import AGENTS, CONTENDERS, evaluations
    from sentinel_paper.settings import CARTPOLE, HIGHWAY

    size = trained.Settings(runs=RUNS, preset="tuned", seed=SEED)
    size = size.made_quick() if quick else size
    long = fig_highway_crashes.longer(size)

    def highway(contenders: Sequence[trained.Contender]) -> list[Any]:
        return [trained.cell(HIGHWAY, contender, size, evaluations(size)) for contender in contenders]

    def far(contenders: Sequence[trained.Contender]) -> list[Any]:
        return [trained.cell(HIGHWAY, contender, long) for contender in contenders]

    def pole(contenders: Sequence[trained.Contender]) -> list[Any]:
        return [trained.cell(CARTPOLE, contender, size) for contender in contenders]

    by_agent: dict[str, list[trained.Contender]] = {}
    for contender in AGENTS:
        by_agent.setdefault(contender.agent, []).append(contender)
    references = [contender for contender in CONTENDERS if contender not in AGENTS]
    seen_far = [contender for contender in references if contender in fig_highway_crashes.CONTENDERS]
    one, two, _, eight = table_ensemble_size.SIZES
    return {
        **{f"long-{name}": (far(own), False) for name, own in by_agent.items()},
        **{f"table-{name}": (highway(own), False) for name, own in by_agent.items()},
        "table-references": (highway(references), False),
        "long-references": (far(seen_far), False),
        "size-8": (highway([eight]), False),
        "size-1-2": (highway([one, two]), False),
        "pole-sizes": (pole(table_ensemble_size.CONTENDERS), True),
        "pole-risk": (pole(fig_risk_measures.CONTENDERS), False),
        "pole-lambda": (pole(fig_ftrl_lambda.CONTENDERS), False),
    }


def compute(part: str, records: Path, quick: bool, at_once: int | None) -> None:
    """Compute what is missing of a part; of the paper's cells so many runs at once."""
    from sentinel_paper import caution
    from sentinel_paper.trained import Execution, Unfinished
    from sentinel_rl.study import Store, run_grid
    from sentinel_rl.study.record import join, split

    told = [0.0]

    def report(progress: Any) -> None:
        if time.monotonic() - told[0] > 30:
            told[0] = time.monotonic()
            say(f"{part}: {progress}")

    if part.startswith(CAUTION):
        number = int(part.removeprefix(CAUTION))
        settings = caution.SETTINGS.made_quick() if quick else caution.SETTINGS
        with contextlib.suppress(Unfinished):
            caution.run(settings, report, Execution(records, shard=(number, PIECES)))
        return
    cells, apart = cells_of(quick)[part]
    store = Store(records)
    missing = [cell for cell in cells if cell not in store]
    parts = [split(cell, at_once or len(cell.seeds)) for cell in missing]
    for number in range(max(map(len, parts), default=0)):
        now = [each[number] for each in parts if number < len(each)]
        for record in run_grid(now, store, report=report, apart=apart, save_seconds=NEVER):
            seconds = ", ".join(f"{name} {value:.0f} s" for name, value in record.about["seconds"].items())
            failures = " with failures" if record.about["failures"] else ""
            say(f"{part}: {record.cell.label}, {len(record.cell.seeds)} runs: {seconds}{failures}")
    for cell, pieces in zip(missing, parts, strict=True):
        if len(pieces) > 1:
            found = {piece.id: record for piece in pieces if (record := store.get(piece)) is not None}
            store.put(join(cell, pieces, found, {}))
            for piece in pieces:
                store.remove(piece)


def work(parts: Sequence[str], records: Path, quick: bool, at_once: int | None) -> bool:
    """Compute parts one after the other; a part that fails does not stop the others."""
    whole = True
    for part in parts:
        began = time.monotonic()
        try:
            compute(part, records, quick, at_once)
            say(f"{part}: done in {time.monotonic() - began:.0f} s")
        except Exception:  # the log says why; what is there is kept, and the same command tries again
            traceback.print_exc()
            say(f"{part}: failed after {time.monotonic() - began:.0f} s")
            whole = False
    return whole


def run(lanes: Sequence[Lane], given: argparse.Namespace) -> bool:
    """Start a process for every lane, and tell once a minute where each stands."""
    given.logs.mkdir(parents=True, exist_ok=True)
    files, processes = {}, {}
    with shared_gpu() as shared:
        try:
            for lane in lanes:
                files[lane] = given.logs / f"{lane.parts[0]}.log"
                processes[lane] = start(lane, given, files[lane], shared)
            while any(process.poll() is None for process in processes.values()):
                wait(processes.values(), 5 if given.quick else 60)
                for lane, process in processes.items():
                    state = "" if process.poll() is None else f" (ended, {process.returncode})"
                    say(f"{lane.parts[0]}{state}: {last_line(files[lane])}")
        finally:
            for process in processes.values():
                if process.poll() is None:
                    process.send_signal(signal.SIGTERM)
    return all(process.returncode == 0 for process in processes.values())


def start(lane: Lane, given: argparse.Namespace, log: Path, shared: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start the process of a lane."""
    settings = {**os.environ, **shared, "XLA_PYTHON_CLIENT_PREALLOCATE": "false", "PYTHONUNBUFFERED": "1"}
    if shared and lane.share < 100:
        settings |= {"CUDA_MPS_CLIENT_PRIORITY": "1", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": str(lane.share)}
    command = ["nice", "-n", str(lane.niceness), sys.executable, __file__, "work", "--records", str(given.records)]
    command += ["--quick"] * given.quick + (["--at-once", str(given.at_once)] if given.at_once else [])
    command += ["--parts", *lane.parts]
    with log.open("ab") as file:
        return subprocess.Popen(command, env=settings, stdout=file, stderr=file)


@contextlib.contextmanager
def shared_gpu() -> Iterator[Mapping[str, str]]:
    """Run NVIDIA's multi-process service, where there is one, for processes with these variables."""
    control = shutil.which(MPS)
    if control is None:
        say("without NVIDIA's multi-process service the processes take turns on the GPU")
        yield {}
        return
    with tempfile.TemporaryDirectory(prefix="mps-") as folder:
        variables = {f"CUDA_MPS_{name}_DIRECTORY": f"{folder}/{name.lower()}" for name in ("PIPE", "LOG")}
        for place in variables.values():
            Path(place).mkdir()
        environment = {**os.environ, **variables}
        try:
            started = subprocess.run([control, "-d"], env=environment, check=False).returncode == 0
            shared = started and tried(environment)
            say("the processes share the GPU" if shared else "NVIDIA's multi-process service does not work here")
            yield variables if shared else {}
        finally:
            subprocess.run([control], input=b"quit\n", env=environment, check=False)


def tried(environment: Mapping[str, str]) -> bool:
    """Whether a process with these variables computes: where the service cannot serve, it says so only then."""
    program = [sys.executable, "-c", "import jax; jax.numpy.ones(8).sum().block_until_ready()"]
    settings = {**environment, "JAX_PLATFORMS": "cuda"}
    try:
        return subprocess.run(program, env=settings, check=False, timeout=60).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def wait(processes: Any, seconds: float) -> None:
    """Wait, or until all processes have ended."""
    until = time.monotonic() + seconds
    while time.monotonic() < until and any(process.poll() is None for process in processes):
        time.sleep(0.5)


def last_line(file: Path) -> str:
    """What a lane said last."""
    lines = file.read_text(errors="replace").splitlines()
    return lines[-1][:160] if lines else "begins"


def say(text: str) -> None:
    """Print a line with the time."""
    print(time.strftime("%H:%M:%S"), text, flush=True)


def main() -> None:
    """Run all lanes, or the work of one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "work", "show"))
    parser.add_argument("--records", type=Path, default=Path("results/records"))
    parser.add_argument("--logs", type=Path, default=Path("runs/at-size"))
    parser.add_argument("--lanes", nargs="*", help="by the names of their first parts; all if not given")
    parser.add_argument("--parts", nargs="*", default=[], help="what a process computes")
    parser.add_argument("--at-once", type=int, help="runs of a cell: a stopped cell keeps those that are done")
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    if given.what == "show":
        for lane in LANES:
            print(", ".join(lane.parts))
        return
    if given.what == "work":
        sys.exit(0 if work(given.parts, given.records, given.quick, given.at_once) else 1)
    named = {lane.parts[0]: lane for lane in LANES}
    if unknown := set(given.lanes or ()) - set(named):
        parser.error(f"no lane begins with {', '.join(sorted(unknown))}: choose of {', '.join(named)}")
    wanted = [named[name] for name in given.lanes or named]
    sys.exit(0 if run(wanted, given) else 1)


if __name__ == "__main__":
    main()
