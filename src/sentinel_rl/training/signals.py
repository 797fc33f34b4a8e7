"""Ctrl-C and SIGTERM as a request that a run honours when it can: between two chunks, after saving."""

import signal
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from sentinel_rl.errors import SentinelWarning

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stopper:
    """Tells whether a stop was requested.

    Args:
        active: whether signals are caught at all.
    """

    def __init__(self, active: bool):
        self.active = active
        self.requested = False
        self.signal: signal.Signals | None = None


@contextmanager
def catch_signals() -> Iterator[Stopper]:
    """Turn the first SIGINT or SIGTERM of the block into ``stopper.requested``; the second stops at once.

    The second one goes to whoever was responsible before: SIGINT raises KeyboardInterrupt, SIGTERM ends the
    process. Python delivers signals to the main thread only: elsewhere nothing is caught, and a warning says so.

    >>> with catch_signals() as stopper:
    ...     signal.raise_signal(signal.SIGTERM)
    ...     print(stopper.requested, stopper.signal.name)
    True SIGTERM
    """
    if threading.current_thread() is not threading.main_thread():
        warnings.warn(
            "signals are not caught outside the main thread: Ctrl-C or SIGTERM will not save the run before it stops",
            SentinelWarning,
            stacklevel=3,
        )
        yield Stopper(active=False)
        return
    stopper = Stopper(active=True)
    # What is ignored (by nohup, for example) stays so.
    before = {number: old for number in SIGNALS if (old := signal.getsignal(number)) is not signal.SIG_IGN}

    def handle(number: int, frame: FrameType | None) -> None:
        if stopper.requested:
            _restore(before)
            signal.raise_signal(number)
        stopper.requested, stopper.signal = True, signal.Signals(number)

    try:
        for number in before:
            signal.signal(number, handle)
        yield stopper
    finally:
        _restore(before)


def _restore(handlers: dict[signal.Signals, Any]) -> None:
    for number, handler in handlers.items():
        # None: it was not installed from Python, and cannot be put back from there.
        signal.signal(number, signal.SIG_DFL if handler is None else handler)
