"""Weights & Biases as a log target."""

import importlib
import json
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sentinel_rl.errors import UsageError
from sentinel_rl.storage.atomic import make_folder, write_file
from sentinel_rl.training.sinks import Histogram, RunStart

_IDS = "wandb-runs.json"


class WandbSink:
    """Writes scalars, hyperparameters and histograms of return laws to Weights & Biases, one run per seed.

    A run that is resumed goes on under its name: the folder keeps the names. Where there is no network, set the
    environment variable ``WANDB_MODE=offline`` and send the logs later with ``wandb sync``.

    Args:
        project: of W&B.
        folder: for its files.
        label: the runs are named and grouped by it.
        mode: ``"online"``, ``"offline"`` or ``"disabled"``; by default what W&B itself is set to.

    Raises:
        UsageError: when the package wandb is not installed.
    """

    def __init__(self, project: str, folder: str | Path = ".", label: str = "run", mode: str | None = None):
        self.project, self.folder, self.label, self.mode = project, Path(folder), label, mode
        self._runs: dict[int, Any] = {}
        self._starts: dict[int, RunStart] = {}
        # Histograms wait for the scalars of the same step: one row, and one call.
        self._waiting: dict[int, dict[str, Any]] = {}
        try:
            self._wandb = importlib.import_module("wandb")
        except ImportError as error:
            raise UsageError(
                f"the W&B project {project!r} needs the package wandb, which is not installed: "
                "pip install 'sentinel-rl[wandb]'"
            ) from error

    def start(self, run: RunStart) -> None:
        """Keep what the run is told of itself; it begins with the first scalar."""
        self._starts[run.seed] = run

    def write(self, step: int, values: Mapping[str, float], seed: int) -> None:
        """Log the scalars, with the number of steps as ``step``."""
        self._run(seed).log({**self._row(step, seed), **values})

    def write_histograms(self, step: int, histograms: Mapping[str, Histogram], seed: int) -> None:
        """Keep the histograms for the row of the scalars of the same step."""
        drawn = {
            name: self._wandb.Histogram(np_histogram=(masses.tolist(), edges.tolist()))
            for name, (edges, masses) in histograms.items()
        }
        self._waiting[seed] = {**self._row(step, seed), **drawn}

    def close(self) -> None:
        """Finish the runs."""
        for seed, waiting in self._waiting.items():
            self._run(seed).log(waiting)
        self._waiting.clear()
        for run in self._runs.values():
            run.finish()
        self._runs.clear()
        self._starts.clear()

    def _row(self, step: int, seed: int) -> dict[str, Any]:
        """Take what waits for the row of a step; what waited for another one gets a row of its own."""
        waiting = self._waiting.pop(seed, {"step": step})
        if waiting["step"] == step:
            return waiting
        self._run(seed).log(waiting)
        return {"step": step}

    def _run(self, seed: int) -> Any:
        if seed not in self._runs:
            start = self._starts.get(seed, RunStart(seed, 0, False, {}))
            make_folder(self.folder)
            run = self._wandb.init(
                project=self.project,
                dir=str(self.folder),
                id=self._identity(start),
                name=f"{self.label}-seed{seed}",
                group=self.label,
                config={"seed": seed, **start.about},
                resume="allow",
                mode=self.mode,
                reinit="create_new",
            )
            # Steps of training, and not the number of the call: a resumed run may go back.
            run.define_metric("*", step_metric="step")
            self._runs[seed] = run
        return self._runs[seed]

    def _identity(self, start: RunStart) -> str:
        """The name of a run for W&B: that from before where it is resumed, else a fresh one."""
        file, name = self.folder / _IDS, f"{self.label}_seed{start.seed}"
        try:
            known = json.loads(file.read_text()) if file.exists() else {}
        except ValueError:
            known = {}
        if not (start.resumed and isinstance(known, dict) and isinstance(known.get(name), str)):
            known = {**(known if isinstance(known, dict) else {}), name: secrets.token_hex(4)}
            write_file(file, json.dumps(known, indent=1) + "\n")
        return str(known[name])
