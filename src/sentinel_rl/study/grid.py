"""A grid of cells: what is missing is computed, whatever happened before, here or on other machines.

Files are the truth, an engine is only a way to make them: a grid that was stopped, killed or spread over machines
goes on with the cells that have no file, each from its newest checkpoint.
"""

import importlib
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

from sentinel_rl.errors import PartialFailure, Stopped, StorageError, UsageError
from sentinel_rl.study.batching import batches
from sentinel_rl.study.cell import Cell
from sentinel_rl.study.progress import Meter, Report
from sentinel_rl.study.record import Record
from sentinel_rl.study.run import SAVE_SECONDS, Examine, run_cells
from sentinel_rl.study.store import Store
from sentinel_rl.training.signals import Stopper, catch_signals

# Computes cells and puts them into the store, in any order; returns why some could not be computed, by id.
Engine = Callable[[Sequence[Cell], Store, Meter, Stopper], Mapping[str, str]]


def run_grid(
    cells: Sequence[Cell],
    store: Store,
    engine: str = "local",
    address: str | None = None,
    shard: tuple[int, int] | None = None,
    report: Report = lambda progress: None,
    apart: bool = False,
    examine: Examine | None = None,
    save_seconds: float = SAVE_SECONDS,
) -> list[Record]:
    """Compute the cells that have no result yet.

    A finished cell is never computed again; a damaged result counts as missing. A cell that fails does not stop the
    others.

    Args:
        cells: the grid; one that is named twice is computed once.
        store: where results are and go.
        engine: ``"local"``, or ``"ray"`` for a running cluster.
        address: of the cluster (``"auto"`` where None: the one that this machine is a node of).
        shard: ``(i, n)``: only the i-th of n parts of the grid, counted from 1.
        report: is told the progress.
        apart: compute every cell by itself, to measure its seconds, also where an accelerator could take several.
        examine: asks the trained agents for more, see `run_cells`; with the engine ``"local"`` only.
        save_seconds: between two checkpoints of a cell.

    Returns:
        the records of the cells, in their order; with a shard, of its cells.

    Raises:
        PartialFailure: at the end, when cells have failed.
        Stopped: on Ctrl-C or SIGTERM; calling again goes on.
        UsageError: for an engine that cannot be used.
    """
    own = part_of(cells, shard)
    compute = _engine(engine, address, apart, examine, save_seconds)
    store.sweep()
    found = {cell.id: store.get(cell) for cell in own}
    missing = [cell for cell in own if found[cell.id] is None]
    failed: Mapping[str, str] = {}
    if missing:
        with _stopper() as stopper:
            failed = compute(missing, store, Meter(own, missing, report), stopper)
        found |= {cell.id: store.get(cell) for cell in missing}
    absent = {cell.id: cell for cell in own if found[cell.id] is None}
    if absent:
        raise PartialFailure(_told(absent, failed, store, len(own)))
    return [record for cell in own if (record := found[cell.id]) is not None]


def part_of(cells: Sequence[Cell], shard: tuple[int, int] | None) -> list[Cell]:
    """The cells of a shard, each once: every n-th, so that neighbours, which are alike, are spread.

    Example:
        >>> grid = [Cell("random", "CartPole-v0", steps, (0,)) for steps in (1, 2, 3)]
        >>> [cell.steps for cell in part_of(grid, (1, 2))]
        [1, 3]
    """
    once = list({cell.id: cell for cell in cells}.values())
    if shard is None:
        return once
    number, count = shard
    if not 1 <= number <= count:
        raise UsageError(f"a shard i/n needs 1 <= i <= n, got {number}/{count}")
    return once[number - 1 :: count]


def parse_shard(text: str) -> tuple[int, int]:
    """Read ``i/n``.

    >>> parse_shard("3/8")
    (3, 8)
    """
    number, _, count = text.partition("/")
    if not (number.isdecimal() and count.isdecimal()):
        raise UsageError(f"a shard is written i/n, for example 1/4, got {text!r}")
    shard = int(number), int(count)
    part_of([], shard)
    return shard


def compute_here(
    cells: Sequence[Cell],
    store: Store,
    meter: Meter,
    stopper: Stopper,
    apart: bool = False,
    examine: Examine | None = None,
    save_seconds: float = SAVE_SECONDS,
) -> Mapping[str, str]:
    """The engine ``local``: all seeds of a cell at once, and on an accelerator all cells of a batch."""
    failed: dict[str, str] = {}
    further: dict[str, Any] = {} if examine is None else {"examine": examine}
    if save_seconds != SAVE_SECONDS:
        further["save_seconds"] = save_seconds
    run: Callable[..., list[Record]] = partial(run_cells, **further)
    waiting, done = [[cell] for cell in cells] if apart else batches(cells), 0
    while waiting:
        batch = waiting.pop(0)
        if stopper.requested:
            raise Stopped(f"stopped after {done} of {len(cells)} cells: run the same again to go on")
        todo = [cell for cell in batch if cell not in store]  # another process may have been faster
        try:
            report = partial(meter.step, todo)
            for record in run(todo, report, stopper, store.checkpoints) if todo else ():
                store.put(record)
        except (Stopped, StorageError):
            raise
        except Exception as error:  # whatever an agent or environment provokes: the other cells go on
            if len(todo) > 1:
                waiting = [*([cell] for cell in todo), *waiting]  # each by itself, to see whose fault it is
                continue
            store.note_failure(todo[0], error)
            failed[todo[0].id] = f"{type(error).__name__}: {error}"
        meter.finish(batch)
        done += len(batch)
    return failed


def _engine(name: str, address: str | None, apart: bool, examine: Examine | None, save_seconds: float) -> Engine:
    if name == "local":
        if address is not None:
            raise UsageError(f"the address {address!r} is one of a Ray cluster: ask for the engine ray")
        return partial(compute_here, apart=apart, examine=examine, save_seconds=save_seconds)
    if examine is not None:
        raise UsageError("trained agents are examined where they were trained: use the engine local")
    if name == "ray":
        engine: Engine = importlib.import_module("sentinel_rl.study.ray_engine").RayEngine(address)
        return engine
    raise UsageError(f"unknown engine {name!r}: choose local or ray")


def _stopper() -> AbstractContextManager[Stopper]:
    """Catch signals where Python can: in the main thread."""
    if threading.current_thread() is threading.main_thread():
        return catch_signals()
    return nullcontext(Stopper(active=False))


def _told(absent: Mapping[str, Cell], failed: Mapping[str, str], store: Store, count: int) -> str:
    reasons = [
        f"  {cell.name}: {(failed.get(name) or store.failure(cell) or 'its result is gone').splitlines()[0]}"
        for name, cell in list(absent.items())[:8]
    ]
    more = [f"  ... and {len(absent) - 8} more"] if len(absent) > 8 else []
    return "\n".join(
        [
            f"{len(absent)} of {count} cells have failed, the others are done:",
            *reasons,
            *more,
            f"See {store.folder / 'failed'}, and run the same again to try them once more",
        ]
    )
