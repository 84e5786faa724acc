"""What workers could not measure at all, as the error that ends the search."""

from __future__ import annotations

from rpl_core.errors import BadDataError, MissingError, RplError, UsageError

_KINDS: dict[int, type[RplError]] = {64: UsageError, 65: BadDataError, 69: MissingError}


def worker_error(device: str, fact: str, exit_code: int) -> RplError:
    """The error of a worker with its exit code kept."""
    return _KINDS.get(exit_code, RplError)(f"{device}: {fact}")
