"""A plan cut into pieces of equal shape, between which the host saves, reports and looks for NaN."""

import dataclasses
from collections.abc import Iterator

import numpy as np
from jaxtyping import Array

from sentinel_rl.training.schedule import Plan


@dataclasses.dataclass(frozen=True)
class Segments:
    """Stretches of steps, each followed by an update or not: ``begin <= t < end``, then update number ``update``.

    ``length`` is set when all stretches are equally long: a loop of known length needs no question to the host.
    """

    begin: np.ndarray | Array
    end: np.ndarray | Array
    update: np.ndarray | Array
    length: int | None

    def __len__(self) -> int:
        """The number of stretches."""
        return len(self.begin)

    def __getitem__(self, part: slice) -> "Segments":
        """A part of the stretches."""
        return Segments(self.begin[part], self.end[part], self.update[part], self.length)


def segments(plan: Plan, begin: int, longest: int = 2_000) -> Segments:
    """Cut the steps of a plan from ``begin`` on at its updates, and where a stretch would be too long.

    An ``update`` of 0 means that none follows.
    """
    times = plan.learn_times
    cuts = np.union1d(plan.learn.times(plan.steps), np.arange(0, plan.steps, longest))
    cuts = np.union1d(cuts[cuts > begin], [plan.steps])
    starts = np.concatenate([[begin], cuts[:-1]])
    update = np.where(np.isin(cuts, times), np.searchsorted(times, cuts, side="right"), 0)
    lengths = cuts - starts
    even = int(lengths[0]) if np.all(lengths == lengths[0]) else None
    return Segments(starts.astype(np.int32), cuts.astype(np.int32), update.astype(np.int32), even)


def chunked(plan: Plan, begin: int, target: int, end: int | None = None) -> Iterator[tuple[Segments, int]]:
    """Cut a plan into chunks of about `target` steps and equal shape, so that one compiled program serves all.

    The cuts are those of the whole plan where `begin` is one of them, so that a resumed run needs no other program.
    """
    if begin >= plan.steps:
        return
    pieces = _pieces(segments(plan, 0), target)
    if all(piece.begin[0] != begin for piece in pieces):
        pieces = _pieces(segments(plan, begin), target)
    longest = max(int(piece.end[-1] - piece.begin[0]) for piece in pieces)
    count = max(len(piece) for piece in pieces)
    last = plan.steps if end is None else end
    for piece in pieces:
        if begin <= piece.begin[0] and piece.end[-1] <= last:
            yield _padded(piece, count), longest
        elif begin <= piece.begin[0] < last:
            rest = piece[slice(0, int(np.searchsorted(piece.end, last, side="right")))]
            yield dataclasses.replace(_padded(rest, count), length=None), longest


def _pieces(parts: Segments, target: int) -> list[Segments]:
    """Equal numbers of stretches; where all are equally long, so are the pieces."""
    steps = int(parts.end[-1] - parts.begin[0])
    count = max(1, round(len(parts) * target / max(steps, 1)))
    if parts.length is not None and len(parts) % count:
        count = max(d for d in range(1, count + 1) if len(parts) % d == 0)
    return [parts[slice(i, i + count)] for i in range(0, len(parts), count)]


def _padded(parts: Segments, count: int) -> Segments:
    """Append empty stretches; only plans of uneven stretches come here with a short last piece."""
    missing = count - len(parts)
    if missing == 0:
        return parts
    ends = np.full(missing, parts.end[-1], np.int32)
    return Segments(
        begin=np.append(parts.begin, ends),
        end=np.append(parts.end, ends),
        update=np.append(parts.update, np.zeros(missing, np.int32)),
        length=parts.length,
    )
