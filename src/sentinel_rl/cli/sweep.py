"""``sentinel sweep``: a search over options with Optuna, in a study file that resumes."""

import contextlib
import importlib
import json
import math
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from sentinel_rl.cli.ranges import Range, parse_ranges
from sentinel_rl.cli.request import TrainingRequest
from sentinel_rl.console import note, results
from sentinel_rl.errors import CorruptError, NumericalError, SentinelWarning, UsageError
from sentinel_rl.storage.atomic import make_folder, write_file
from sentinel_rl.storage.configuration import plain
from sentinel_rl.storage.lock import hold
from sentinel_rl.storage.validation import number, require
from sentinel_rl.training.compiled import Progress
from sentinel_rl.training.metrics import find_metric, measure
from sentinel_rl.training.population import use_all_cores
from sentinel_rl.training.trainer import train

NAME = "sweep"
# Reports of a learning curve at which a trial may be stopped, and trials before the first one is.
_LOOKS, _STARTUP = 20, 5
_REQUEST = "request"


def run(
    file: Path, asked: TrainingRequest, vary: Sequence[str], trials: int, metric: str, evaluate: int, seed: int
) -> None:
    """Make the trials that are missing, print the best ones, and write the best options as a file.

    Raises:
        UsageError: when optuna is missing, or the file holds another search.
    """
    optuna = _optuna()
    ranges = parse_ranges(vary, asked.agent)
    if find_metric(metric).better != "high":
        raise UsageError(f"--metric {metric}: the lower the better: choose return, value or tail")
    if asked.env.wrappers:
        note("the environment has wrappers: trials are trained one seed after the other")
    use_all_cores()
    make_folder(file.parent)
    handle = asked.env.make()
    # Optuna's own lock, held for moments, is FILE.lock: it would wait for ours, and then remove it.
    with hold(file.with_name(f"{file.name}.in-use")), _quiet(optuna):
        study = _study(optuna, file, _description(asked, vary, metric, evaluate), ranges, seed, asked.steps)
        _try_again(optuna, study)

        def objective(trial: Any) -> float:
            options = {name: range_.suggest(name, trial) for name, range_ in ranges.items()}
            return _trial(optuna, trial, asked, handle, options, metric, evaluate)

        done = _finished(study)
        while done < trials:
            study.optimize(objective, n_trials=1, catch=(NumericalError,))
            latest = study.trials[-1]
            note(f"trial {latest.number}: {_told(latest)}")
            done = _finished(study)
        _show(study, file, asked, ranges, metric)


def _optuna() -> Any:
    try:
        return importlib.import_module("optuna")
    except ImportError as error:
        raise UsageError("a sweep needs the package optuna: pip install 'sentinel-rl[optuna]'") from error


@contextlib.contextmanager
def _quiet(optuna: Any) -> Iterator[None]:
    """Let our own lines stand for Optuna's, and what it calls experimental pass."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            yield
    finally:
        optuna.logging.set_verbosity(before)


def _description(asked: TrainingRequest, vary: Sequence[str], metric: str, evaluate: int) -> str:
    """All that makes a search what it is, as text."""
    env = {"name": asked.env.name, "settings": asked.env.settings, "wrappers": asked.env.wrappers}
    training = {"agent": asked.agent, "env": env, "steps": asked.steps, "seeds": asked.seeds, "options": asked.options}
    return json.dumps(plain({**training, "vary": sorted(vary), "metric": metric, "evaluate": evaluate}), sort_keys=True)


def _study(optuna: Any, file: Path, description: str, ranges: Iterable[str], seed: int, steps: int) -> Any:
    """The study of a file, a fresh one where there is none.

    Raises:
        UsageError: where it holds another search.
        CorruptError: where it holds no study, or trials that no search makes.
    """
    journal = importlib.import_module("optuna.storages.journal")
    fresh = not file.exists()
    try:
        storage = optuna.storages.JournalStorage(journal.JournalFileBackend(str(file)))
        pruner = optuna.pruners.MedianPruner(n_startup_trials=_STARTUP, n_warmup_steps=steps // 4)
        study = optuna.create_study(
            storage=storage, study_name=NAME, direction="maximize", load_if_exists=True, pruner=pruner
        )
        known = study.user_attrs.get(_REQUEST)
        _check_trials(study)
    except OSError:
        raise
    except Exception as error:  # whatever a damaged or malicious file provokes in Optuna
        raise CorruptError(
            f"{file} is no study of sentinel sweep, or is damaged ({str(error) or type(error).__name__}): give another "
            "file"
        ) from error
    if fresh or known is None:
        study.set_user_attr(_REQUEST, description)
    elif known != description:
        raise UsageError(
            f"{file} holds another search:\n  saved: {known}\n  asked: {description}\nGive another file, or ask for "
            "the saved one to resume it"
        )
    if missing := {name for trial in _complete(study) for name in ranges if name not in trial.params}:
        raise CorruptError(
            f"{file} has trials without {', '.join(sorted(missing))}, which it varies: give another file"
        )
    # A resumed search must not draw again what it began with.
    study.sampler = optuna.samplers.TPESampler(seed=seed + len(study.trials))
    return study


def _check_trials(study: Any) -> None:
    """Raise `ValueError` for a trial that cannot have been made by a search."""
    for trial in _complete(study):
        require(trial.values is not None and len(trial.values) == 1, "values", trial.values, "one number")
        number(f"the value of trial {trial.number}", trial.values[0])


def _complete(study: Any) -> list[Any]:
    return [trial for trial in study.trials if trial.state.name == "COMPLETE"]


def _try_again(optuna: Any, study: Any) -> None:
    """Trials that a killed process left running have failed; their options are tried again first."""
    states = optuna.trial.TrialState
    for trial in study.get_trials(states=(states.RUNNING,)):
        study.tell(trial.number, state=states.FAIL)
        if trial.params:
            study.enqueue_trial(trial.params, user_attrs={"again": trial.number})
        note(f"trial {trial.number} was interrupted: it is tried again")


def _finished(study: Any) -> int:
    return sum(trial.state.name in ("COMPLETE", "PRUNED") or _failed_alone(trial) for trial in study.trials)


def _failed_alone(trial: Any) -> bool:
    """Whether a trial failed by its own numbers: it counts, and is not tried again."""
    return trial.state.name == "FAIL" and "failed" in trial.user_attrs


def _trial(
    optuna: Any,
    trial: Any,
    asked: TrainingRequest,
    handle: Any,
    options: Mapping[str, Any],
    metric: str,
    evaluate: int,
) -> float:
    """Train with some options, report the learning curve, and return what the final policies earn on average."""
    pruned = False

    def look(progress: Progress) -> bool:
        nonlocal pruned
        recent = [progress.history.recent(run).reward for run in range(len(progress.seeds))]
        means = [float(np.mean(rewards)) for rewards in recent if len(rewards)]
        if means and not progress.done and len(progress.seeds) == len(asked.seeds):
            trial.report(float(np.mean(means)), progress.t)
            pruned = bool(trial.should_prune())
        return not pruned

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SentinelWarning)  # one set of options of many may well be a poor one
        try:
            result = train(
                asked.agent,
                handle,
                asked.steps,
                asked.seeds,
                evaluate=evaluate,
                evaluation_env=asked.env.make() if asked.env.wrappers else None,
                callbacks=look,
                save_every=max(asked.steps // _LOOKS, 1),
                progress=False,
                **{**asked.options, **options},
            )
        except NumericalError as error:
            trial.set_user_attr("failed", str(error))
            raise
    if pruned:
        raise optuna.TrialPruned
    if result.episodes is None:
        return math.nan
    return float(np.nanmean(measure(result.episodes, [metric])[metric]))


def _told(trial: Any) -> str:
    params = ", ".join(f"{name}={value:.4g}" if isinstance(value, float) else f"{name}={value}"
                       for name, value in trial.params.items())  # fmt: skip
    if trial.state.name == "COMPLETE":
        return f"{trial.value:.4g} with {params}"
    words = {"PRUNED": "stopped early", "FAIL": "failed"}
    return f"{words.get(trial.state.name, trial.state.name.lower())} with {params}"


def _show(study: Any, file: Path, asked: TrainingRequest, ranges: Mapping[str, Range], metric: str) -> None:
    complete = sorted(_complete(study), key=lambda trial: -trial.value)
    if not complete:
        raise UsageError("no trial came to its end: give more steps, or other ranges")
    table = Table(title=f"{asked.agent} on {asked.env.name}: {len(complete)} of {len(study.trials)} trials complete")
    for column in ("trial", metric, *ranges):
        table.add_column(column, justify="right")
    for trial in complete[:10]:
        told = [f"{v:.4g}" if isinstance(v, float) else str(v) for v in (trial.params.get(name) for name in ranges)]
        table.add_row(str(trial.number), f"{trial.value:.4g}", *told)
    results().print(table)
    best = {name: range_.value(complete[0].params[name]) for name, range_ in ranges.items()}
    content = {
        "agent": asked.agent,
        "env": asked.env.name,
        "env_kwargs": dict(asked.env.settings),
        "wrappers": list(asked.env.wrappers),
        "steps": asked.steps,
        "seeds": asked.seeds,
        "options": {**asked.options, **best},
    }
    target = write_file(file.with_suffix(".best.json"), json.dumps(plain(content), indent=1) + "\n")
    lines = f"study: {file}\nbest options: {target}\nnext: sentinel train --config {target} --out DIR"
    results().print(lines, markup=False, soft_wrap=True)
