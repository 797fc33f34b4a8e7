"""The engine ``ray``: every task is a cell, or one of its seeds, and writes its result to a disk that all nodes share.

Only paths and settings travel, never states. Ray starts a task again whose process or machine has died; an error in a
task is final.
"""

import importlib
import os
import socket
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import jax

from sentinel_rl.errors import NumericalError, PartialFailure, Stopped, UsageError
from sentinel_rl.study.cell import Cell
from sentinel_rl.study.progress import Meter
from sentinel_rl.study.record import join, split
from sentinel_rl.study.run import run_cell
from sentinel_rl.study.store import Store
from sentinel_rl.training.signals import Stopper

PATIENCE = 30.0  # seconds until a cluster that does not answer is given up
RETRIES = 3
_LOOK = 1.0  # seconds between two looks for a signal
_INSTALL = 'pip install "sentinel-rl[ray]"'


def compute(content: dict[str, Any], folder: str) -> str | None:
    """Compute a cell on a node; returns why all of its runs have failed, if they have."""
    jax.devices()  # a task has one core or GPU: once JAX runs on it, `run_cell` does not take all of the node's
    cell, store = Cell.from_json(content), Store(folder)
    if store.get(cell) is None:  # a task that is started again may have been done
        try:
            store.put(run_cell(cell, checkpoints=store.checkpoints))
        except NumericalError as error:
            store.note_failure(cell, error)
            return str(error)
    return None


class RayEngine:
    """Computes cells on a running cluster.

    Where the cluster has GPUs a task is a whole cell on one of them, else one seed of it on one core.

    Args:
        address: of the cluster, for example ``"10.0.0.1:6379"``; by default the one that this machine is a node of.

    Raises:
        UsageError: when Ray is not installed.
    """

    def __init__(self, address: str | None = None):
        # Under `uv run` Ray would build the environment of every worker anew, and wait for it.
        os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
        # A task that does not fit into the memory of its node is killed by Ray, which would start it again for ever.
        os.environ.setdefault("RAY_task_oom_retries", str(RETRIES))
        try:
            self._ray: Any = importlib.import_module("ray")
        except ImportError as error:
            raise UsageError(f"the engine ray needs Ray, which is not installed here: {_INSTALL}") from error
        self._address = address or "auto"

    def __call__(self, cells: Sequence[Cell], store: Store, meter: Meter, stopper: Stopper) -> Mapping[str, str]:
        """Compute cells; returns why some could not be, by id."""
        ours = not self._ray.is_initialized()
        if ours:
            self._connect()
        try:
            return _Session(self._ray, cells, store, meter, stopper).run()
        finally:
            if ours:
                self._ray.shutdown()

    def _connect(self) -> None:
        """Connect, or give up after a while: some ways to fail would wait for minutes."""
        outcome: list[BaseException | None] = []

        def connect() -> None:
            try:
                _knock(self._address)
                self._ray.init(self._address, log_to_driver=False, logging_level="ERROR")
                outcome.append(None)
            except BaseException as error:  # it is told where somebody can catch it
                outcome.append(error)

        thread = threading.Thread(target=connect, daemon=True)
        thread.start()
        thread.join(PATIENCE)
        error = outcome[0] if outcome else TimeoutError(f"nothing within {PATIENCE:.0f} s")
        if error is not None:
            raise UsageError(
                f"no Ray cluster answers at {self._address!r} ({str(error).splitlines()[0]}): start one "
                "(ray start --head), check the address, or use the engine local"
            ) from error


def _knock(address: str) -> None:
    """Raise `OSError` where nobody listens: Ray would try again for long."""
    host, _, port = address.rpartition(":")
    if host and port.isdecimal() and "/" not in host:
        socket.create_connection((host, int(port)), PATIENCE).close()


class _Session:
    """One grid on a cluster: pieces are submitted and taken in, and cells made of them as soon as all are there."""

    def __init__(self, ray: Any, cells: Sequence[Cell], store: Store, meter: Meter, stopper: Stopper):
        self._ray, self._meter, self._stopper = ray, meter, stopper
        self._on_gpus = ray.cluster_resources().get("GPU", 0) > 0
        self._store = store
        self._parts = store if self._on_gpus else Store(store.folder / "parts")
        self._cells = {cell.id: cell for cell in cells}
        self._pieces = {cell.id: [cell] if self._on_gpus else split(cell, 1) for cell in cells}
        # Why a piece could not be computed, why all runs of one have failed, and so why cells are missing.
        self._errors: dict[str, str] = {}
        self._failed: dict[str, str] = {}
        self._missing: dict[str, str] = {}

    def run(self) -> Mapping[str, str]:
        """Compute all; returns why cells are missing."""
        pending = self._submit()
        left = {name: {piece.id for piece in pieces} for name, pieces in self._pieces.items()}
        while pending:
            ready, _ = self._ray.wait(list(pending), num_returns=1, timeout=_LOOK)
            if self._stopper.requested:
                for task in pending:
                    self._ray.cancel(task, force=True)
                raise Stopped("stopped: what the cluster has finished is kept, run the same again to go on")
            for task in ready:
                piece = pending.pop(task)
                self._take(task, piece)
                for name, waiting in left.items():
                    if piece.id in waiting:
                        waiting.remove(piece.id)
                        if not waiting:
                            self._finish(self._cells[name])
        self._clear()
        return self._missing

    def _submit(self) -> dict[Any, Cell]:
        """Every piece once, also where cells share seeds."""
        needs = {"num_gpus": 1} if self._on_gpus else {"num_cpus": 1}
        remote = self._ray.remote(max_retries=RETRIES, retry_exceptions=False, **needs)(compute)
        once = {piece.id: piece for pieces in self._pieces.values() for piece in pieces}
        folder = str(self._parts.folder.resolve())
        return {remote.remote(piece.to_json(), folder): piece for piece in once.values()}

    def _take(self, task: Any, piece: Cell) -> None:
        try:
            if (why := self._ray.get(task)) is not None:
                self._failed[piece.id] = why
        except self._ray.exceptions.RayError as error:
            cause = getattr(error, "cause", None) or error
            self._errors[piece.id] = f"{type(cause).__name__}: {cause}"

    def _finish(self, cell: Cell) -> None:
        pieces = self._pieces[cell.id]
        records = {piece.id: found for piece in pieces if (found := self._parts.get(piece)) is not None}
        absent = [piece.id for piece in pieces if piece.id not in records]
        if why := self._problem(absent, bool(records)):
            self._missing[cell.id] = why
            self._store.note_failure(cell, PartialFailure(why))
        elif not self._on_gpus:
            self._store.put(join(cell, pieces, records, self._failed))
        self._meter.finish([cell])

    def _problem(self, absent: Sequence[str], some: bool) -> str | None:
        """Why pieces that are absent keep a cell from being made, if they do: runs may fail, but not all of them."""
        for name in absent:
            if name in self._errors:
                return self._errors[name]
            if name not in self._failed:
                where = self._parts.folder.resolve()
                return f"no file has come to {where} from the node that wrote it: it must be on a disk that all share"
        return None if some else self._failed[absent[0]]

    def _clear(self) -> None:
        """Remove the pieces of cells that are whole; those of others are needed when the grid is run again."""
        needed = {piece.id for name in self._missing for piece in self._pieces[name]}
        for piece in [] if self._on_gpus else [piece for pieces in self._pieces.values() for piece in pieces]:
            if piece.id not in needed:
                self._parts.remove(piece)
