"""``sentinel verify``: train a part of a run again, and compare every bit with what was saved."""

from pathlib import Path
from typing import Any

from sentinel_rl.cli.runs import read_run
from sentinel_rl.console import progress_bar, results
from sentinel_rl.errors import IncompatibleError, UsageError
from sentinel_rl.storage.arrays import describe, to_host
from sentinel_rl.storage.checkpoint import load, saved
from sentinel_rl.storage.run_folder import CHECKPOINTS
from sentinel_rl.training.keeper import Keeper, fit_checkpoint
from sentinel_rl.training.population import use_all_cores


def run(path: Path) -> None:
    """Train from the older checkpoint (or from the beginning) to the newest one, and compare.

    Raises:
        IncompatibleError: when a bit differs.
    """
    use_all_cores()
    run = read_run(path)
    places = list({place.step: place for place in saved(path / CHECKPOINTS)}.values())
    if not places:
        raise UsageError(f"{path} has no checkpoint yet: there is nothing to verify")
    training = run.training()
    keeper, newest = Keeper(training, path / CHECKPOINTS, monitors=path), places[-1]
    wanted, _ = load(newest.folder, training.form(), keeper.about, fit_checkpoint)
    if len(places) > 1:
        keeper.resume_from(places[-2].step)
    begin = training.t
    with progress_bar("training again") as report:
        for progress in training.chunks(end=newest.step):
            report(progress.t - begin, newest.step - begin)
    different = _differing(training.tree()["runs"], wanted["runs"])
    if different:
        raise IncompatibleError(
            f"{path}: {len(different)} arrays differ after training again from step {begin} to {newest.step}, "
            f"first {different[0]}: the checkpoint was made by another version or kind of device, or is not this run's"
        )
    count, bits = len(describe(wanted["runs"])), sum(array.nbytes for array in to_host(wanted["runs"]))
    results().print(
        f"verified: training again from step {begin} to {newest.step} gives the checkpoint of step {newest.step}, "
        f"bit for bit ({count} arrays, {bits:,} bytes, {len(training.seeds)} seeds)",
        soft_wrap=True,
    )


def _differing(made: Any, wanted: Any) -> list[str]:
    """The places of the arrays whose bytes differ."""
    pairs = zip(describe(made), to_host(made), to_host(wanted), strict=True)
    return [leaf.path for leaf, one, other in pairs if one.tobytes() != other.tobytes()]
