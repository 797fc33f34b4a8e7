"""What the folder of a run tells of its training, every entry checked: the folder may be somebody else's."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from sentinel_rl.errors import UsageError
from sentinel_rl.storage.run_folder import Status, status
from sentinel_rl.storage.validation import LONGEST_NAME, LONGEST_TEXT, from_file, names, number, require, text, whole
from sentinel_rl.training import legacy
from sentinel_rl.training.schedule import LARGEST_STEP, require_seeds

# Of the learning curves of a run.
MOST_POINTS = 1_000_000


class RunNotes(NamedTuple):
    """A training as its folder tells it.

    Args:
        request: environment, agent, steps, seeds and options, as they were asked for.
        points: of its learning curves.
        gamma: discount of its returns; the task's own when None.
        failed: the seeds whose runs failed, known once the others are finished.
    """

    request: dict[str, Any]
    points: int
    gamma: float | None
    failed: frozenset[int]


def read_notes(path: Path) -> RunNotes | None:
    """Read what a folder tells of its training, one of version 0.1 with the defaults of that version.

    Returns:
        None where the folder holds no training.

    Raises:
        CorruptError: for an entry that no training has.
    """
    found = status(path)
    if found.configuration is None:
        return None
    with from_file(str(path), "run"):
        about = legacy.request(found.configuration) if legacy.is_legacy(found.configuration) else found.about
        if about is None or "env" not in about:
            return None
        check_request(about)
        points, gamma = found.configuration.get("points", 200), found.configuration.get("gamma")
        whole("points", points, 1, MOST_POINTS)
        if gamma is not None:
            number("gamma", gamma, 0.0, 1.0)
        return RunNotes(about, points, gamma, _failed(found))


def check_request(about: Mapping[str, Any]) -> None:
    """Raise `ValueError` for entries that no training was asked for with."""
    text("env", about["env"], LONGEST_TEXT)
    if about["agent"] is not None:  # an agent of the user's own may have no name
        text("agent", about["agent"], LONGEST_NAME)
    whole("steps", about["steps"], 1, LARGEST_STEP)
    try:
        require_seeds(about["seeds"])
    except UsageError as error:
        raise ValueError(error) from error
    require(isinstance(about["seeds"], list), "seeds", about["seeds"], "a list")
    for name in ("options", "env_kwargs"):
        given = about.get(name, {}) if name == "env_kwargs" else about[name]
        require(isinstance(given, dict) and all(map(str.isidentifier, given)), name, given, "a dictionary of options")
    names("wrappers", about.get("wrappers", []))
    if about.get("horizon") is not None:
        whole("horizon", about["horizon"], 1, LARGEST_STEP)


def plan_of(configuration: Mapping[str, Any], where: str | Path) -> tuple[int, int | None]:
    """The steps of a saved configuration, and those that its schedules were planned for if they were fewer.

    Raises:
        CorruptError: for a plan that no training has.
    """
    with from_file(str(where), "run"):
        plan = configuration["plan"]
        steps, horizon = plan["steps"], plan.get("horizon")
        whole("plan.steps", steps, 1, LARGEST_STEP)
        if horizon is not None:
            whole("plan.horizon", horizon, 1, LARGEST_STEP)
    return steps, horizon


def _failed(found: Status) -> frozenset[int]:
    """The seeds that failed, as the end of the run was noted."""
    lines = (found.result or {}).get("seeds", [])
    require(isinstance(lines, list), "finished.seeds", lines, "a list")
    for line in lines:
        require(isinstance(line, dict), "finished.seeds", line, "a list of dictionaries")
        whole("finished.seed", line["seed"])
    return frozenset(line["seed"] for line in lines if "failed" in line)
