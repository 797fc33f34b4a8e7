"""Seconds by phase, with compiling apart from what was compiled."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import jax

_COMPILING = "/jax/core/compile/"


class Stopwatch:
    """Adds up the seconds of the blocks that are measured."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def measure(self, phase: str) -> Iterator[None]:
        """Count the block as this phase, but what JAX traces and compiles in it as ``compiling``."""
        spans: list[tuple[float, float]] = []
        own = threading.get_ident()  # others may compile beside this one

        def listen(event: str, start_time: float, end_time: float, **kwargs: str | int) -> None:
            if event.startswith(_COMPILING) and threading.get_ident() == own:
                spans.append((start_time, end_time))

        jax.monitoring.register_event_time_span_listener(listen)
        began = time.perf_counter()
        try:
            yield
        finally:
            took = time.perf_counter() - began
            jax.monitoring.unregister_event_time_span_listener(listen)
            compiling = min(covered(spans), took)
            self._add("compiling", compiling)
            self._add(phase, took - compiling)

    def _add(self, phase: str, seconds: float) -> None:
        self.seconds[phase] = self.seconds.get(phase, 0.0) + seconds


def covered(spans: list[tuple[float, float]]) -> float:
    """The length of the union of intervals: a program is traced inside another one.

    >>> covered([(0.0, 2.0), (1.0, 3.0), (1.0, 1.5), (5.0, 6.0)])
    4.0
    """
    total, reached = 0.0, float("-inf")
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total
