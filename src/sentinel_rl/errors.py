"""What can go wrong, and the exit code a command ends with when it does.

A message says what happened and where, what was expected and what was found, and what to do.
"""


class SentinelError(Exception):
    """An error with a message for the user: it is shown without a traceback."""

    exit_code = 1


class UsageError(SentinelError, ValueError):
    """Something was asked for that cannot be done: an option, a configuration, a folder in use."""

    exit_code = 2


class IncompatibleError(SentinelError):
    """Saved data that does not fit what was asked for, or that this version cannot read."""

    exit_code = 3


class CorruptError(IncompatibleError):
    """Saved data that is damaged, incomplete or not ours; an older copy may still be good."""


class NumericalError(SentinelError):
    """A number that must be finite is not."""

    exit_code = 4


class PartialFailure(SentinelError):  # noqa: N818 (the rest succeeded)
    """All that could be done is done, but some of it failed."""

    exit_code = 5


class StorageError(SentinelError):
    """A file could not be written or read: disk full, read-only, not permitted."""

    exit_code = 74


class Stopped(SentinelError):  # noqa: N818 (nothing went wrong)
    """Stopped on request; what was done is saved and can be resumed."""

    exit_code = 75


class SentinelWarning(UserWarning):
    """Work goes on, but the user should know."""
