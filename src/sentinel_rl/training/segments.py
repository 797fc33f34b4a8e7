"""A plan cut into segments that end with an update, and into chunks of segments that are one compiled call each.

Between two chunks the host saves, reports and looks for NaN. All chunks of all plans with the same schedule have the
same shape, so that one compiled program serves any number of steps; where a chunk is cut changes no bit of a run.
"""

import dataclasses
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from jaxtyping import Array

from sentinel_rl.training.schedule import Plan, Schedule

# Steps of a segment at most: where updates are rarer, the segments between them bring none.
_LONGEST = 2_000


@dataclasses.dataclass(frozen=True)
class Segments:
    """Steps ``begin <= t < end``, each segment followed by update number ``update``, or by none where that is 0.

    Args:
        begin: the first step of every segment.
        end: the step after its last; that of an empty segment, which fills up a chunk, is its `begin`.
        update: the number of the update that follows, counted from 1.
        length: the steps of a full segment where the schedule is periodic, else None. No segment is longer; one that
            is cut by the end of a plan or of a request is shorter.
    """

    begin: np.ndarray | Array
    end: np.ndarray | Array
    update: np.ndarray | Array
    length: int | None

    def __len__(self) -> int:
        """The number of segments, empty ones counted."""
        return len(self.begin)

    def __getitem__(self, part: slice) -> "Segments":
        """A part of the segments."""
        return Segments(self.begin[part], self.end[part], self.update[part], self.length)

    @property
    def full(self) -> bool:
        """Whether all segments that are not empty have `length` steps."""
        steps = np.asarray(self.end) - np.asarray(self.begin)
        return self.length is not None and bool(np.all((steps == self.length) | (steps == 0)))


def segments(plan: Plan, begin: int = 0, end: int | None = None, longest: int = _LONGEST) -> Segments:
    """Cut the steps of a plan from `begin` to `end` at its updates, and where a segment would be too long.

    Args:
        plan: what to cut.
        begin: the first step.
        end: the step after the last one, by default the end of the plan.
        longest: steps of a segment at most.

    Example:
        >>> segments(Plan(steps=350, warmup=100), end=250).end
        array([100, 200, 250], dtype=int32)
    """
    last = plan.steps if end is None else min(end, plan.steps)
    length = _full_length(plan.learn, longest)
    piece = longest if length is None else length
    times = plan.learn.times(last, begin)
    # Pieces are counted from the update before them.
    marks = np.unique(np.concatenate([[plan.learn.time(plan.learn.count(begin))], times, [last]]))
    between = [np.arange(a + piece, b, piece) for a, b in pairwise(marks) if b - a > piece]
    cuts = np.unique(np.concatenate([marks, *between]))
    cuts = cuts[(cuts > begin) & (cuts <= last)]
    starts = np.concatenate([[begin], cuts[:-1]])[: len(cuts)]
    due = times[times > plan.warmup]
    update = np.where(np.isin(cuts, due), np.searchsorted(due, cuts) + plan.updates(begin) + 1, 0)
    return Segments(starts.astype(np.int32), cuts.astype(np.int32), update.astype(np.int32), length)


def chunked(
    plan: Plan, begin: int, size: int, target: int | None = None, end: int | None = None
) -> Iterator[tuple[Segments, int]]:
    """Cut a plan into chunks of whole segments, all padded to the same shape, which `size` and the schedule decide.

    Args:
        plan: what to cut.
        begin: the first step.
        size: steps of a chunk at most: the rows of its trace.
        target: steps that a chunk should not exceed unless one segment does, at most `size`; `size` when None.
        end: the step after the last one, by default the end of the plan; a segment is cut there.

    Returns:
        the segments of every chunk, and `size`.
    """
    longest, count = min(_LONGEST, size), segments_of_a_chunk(plan.learn, size)
    wanted, last = min(size, target or size), plan.steps if end is None else min(end, plan.steps)
    while begin < last:
        # Far enough for all that may fit, and for one segment in any case: plans can be longer than memory is large.
        parts = segments(plan, begin, min(last, begin + wanted + longest), longest)
        fitting = int(np.searchsorted(parts.end, begin + wanted, side="right"))
        part = parts[: min(max(fitting, 1), count)]
        begin = int(part.end[-1])
        yield _padded(part, count), size


def segments_of_a_chunk(schedule: Schedule, size: int) -> int:
    """The number of segments of every chunk of at most `size` steps, empty ones counted: a matter of the schedule.

    Where updates become rarer, as in the triangular schedule, the first chunk has the most.

    Example:
        >>> from sentinel_rl.training.schedule import Every, Triangular
        >>> segments_of_a_chunk(Every(100), 2_000), segments_of_a_chunk(Triangular(), 2_000)
        (20, 62)
    """
    length = _full_length(schedule, min(_LONGEST, size))
    return max(1, schedule.count(size) if length is None else size // length)


def _full_length(schedule: Schedule, longest: int) -> int | None:
    """The steps of a full segment of a periodic schedule: the period, or equal parts of a long one."""
    if schedule.period is None:
        return None
    return -(-schedule.period // -(-schedule.period // longest))


def _padded(parts: Segments, count: int) -> Segments:
    """Append empty segments."""
    missing = count - len(parts)
    ends = np.full(missing, parts.end[-1], np.int32)
    return Segments(
        begin=np.append(parts.begin, ends),
        end=np.append(parts.end, ends),
        update=np.append(parts.update, np.zeros(missing, np.int32)),
        length=parts.length,
    )
