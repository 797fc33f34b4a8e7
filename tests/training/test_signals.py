"""Ctrl-C and SIGTERM: the first asks, the second does not."""

import signal
import threading

import pytest

from sentinel_rl.errors import SentinelWarning
from sentinel_rl.training.signals import SIGNALS, catch_signals


@pytest.fixture(autouse=True)
def handlers_are_put_back():
    before = [signal.getsignal(number) for number in SIGNALS]
    yield
    assert [signal.getsignal(number) for number in SIGNALS] == before


def test_nothing_requested():
    with catch_signals() as stopper:
        assert stopper.active
    assert (stopper.requested, stopper.signal) == (False, None)


@pytest.mark.parametrize("number", SIGNALS)
def test_the_first_is_a_request(number):
    with catch_signals() as stopper:
        signal.raise_signal(number)
        assert stopper.requested
        assert stopper.signal == number


@pytest.mark.parametrize("first", SIGNALS)
def test_the_second_stops_at_once(first):
    with pytest.raises(KeyboardInterrupt), catch_signals() as stopper:  # noqa: PT012 (it must be the second)
        signal.raise_signal(first)
        assert stopper.requested
        signal.raise_signal(signal.SIGINT)
        pytest.fail("still here")


def test_the_second_goes_to_the_handler_before(monkeypatch):
    heard = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: heard.append(number))
    try:
        with catch_signals():
            signal.raise_signal(signal.SIGTERM)
            assert heard == []
            signal.raise_signal(signal.SIGTERM)
            assert heard == [signal.SIGTERM]
    finally:
        signal.signal(signal.SIGTERM, before)


def test_what_was_ignored_stays_ignored():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with catch_signals() as stopper:
            signal.raise_signal(signal.SIGINT)
            assert not stopper.requested
    finally:
        signal.signal(signal.SIGINT, before)


def test_an_error_in_the_block_puts_the_handlers_back():
    with pytest.raises(ZeroDivisionError), catch_signals():
        raise ZeroDivisionError


def test_elsewhere_than_in_the_main_thread_it_says_that_it_does_nothing():
    found = []

    def work():
        with pytest.warns(SentinelWarning, match="outside the main thread"), catch_signals() as stopper:
            found.append(stopper.active)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [False]
