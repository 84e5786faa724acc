"""How a contract check fails, and what all checks share: demands, equal results, and no side effects."""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import metadata
from typing import Any

from rpl_core.plugins.catalog import KINDS, ContributionKind


class ContractViolation(AssertionError):  # noqa: N818 - it is an assertion about someone's code
    """A contribution breaks a rule of its kind; the message names contribution and rule."""


def demand(holds: bool, subject: str, rule: str) -> None:
    """Raise ``ContractViolation`` unless ``holds``."""
    if not holds:
        raise ContractViolation(f"{subject}: {rule}")


def assert_contribution(hook: str, item: Any) -> None:
    """What the host checks of everything that ``hook`` returns, whichever distribution owns the hook."""
    demand_kind(hook, item)


def _kinds() -> Iterator[ContributionKind[Any]]:
    yield from KINDS
    for entry in metadata.entry_points(group="rpl.hookspecs"):
        yield from entry.load().KINDS


def demand_kind(hook: str, item: Any) -> str:
    """As ``assert_contribution``; returns "Kind name" for messages."""
    kind = next((kind for kind in _kinds() if kind.hook == hook), None)
    if kind is None:
        raise ContractViolation(f"{hook}: no installed distribution has this hook")
    violation = kind.violation(item)
    demand(violation is None, kind.title, violation or "")
    for attribute in kind.required_text:
        text = getattr(item, attribute)
        demand(
            bool(text.strip()) and text.isprintable(),
            f"{kind.title} {kind.identity_of(item)}",
            f"{attribute} must be one non-empty line, found {text!r}",
        )
    return f"{kind.title} {kind.identity_of(item)}"


def demand_positive(value: float, subject: str, what: str) -> None:
    """A finite number above zero."""
    finite = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    demand(finite and value > 0, subject, f"{what} must be a number above 0, found {value!r}")


def demand_reason_or_none(value: object, subject: str) -> None:
    """What ``missing()`` may return."""
    demand(
        value is None or (isinstance(value, str) and bool(value.strip())),
        subject,
        f"missing() must return None or a sentence, found {value!r}",
    )


# Equality of results that may hold numpy arrays and attrs objects, for determinism checks.


def same_value(left: Any, right: Any) -> bool:
    """Whether two results are equal, element by element."""
    if type(left) is not type(right):
        return False
    if hasattr(left, "dtype") and hasattr(left, "tobytes"):
        return bool(
            left.dtype == right.dtype and left.shape == right.shape and left.tobytes() == right.tobytes()
        )
    if isinstance(left, Mapping):
        return list(left) == list(right) and all(same_value(left[key], right[key]) for key in left)
    if isinstance(left, (list, tuple)):
        return len(left) == len(right) and all(map(same_value, left, right))
    fields = getattr(type(left), "__attrs_attrs__", None)
    if fields is not None:
        return all(same_value(getattr(left, f.name), getattr(right, f.name)) for f in fields)
    return bool(left == right)


# Catch what a pure function must not do: open files, start programs, use the network.
#
# Python reports such deeds as audit events (PEP 578), whichever library commits them. An audit hook can't
# be removed again, so there is one, and it looks only while a check is watching.

_DEEDS = {
    "open": "opens a file",
    "os.exec": "runs a program",
    "os.fork": "runs a program",
    "os.posix_spawn": "runs a program",
    "os.system": "runs a program",
    "socket.__new__": "uses the network",
    "subprocess.Popen": "runs a program",
}
#: Whom the check watches, by thread.
_watched: dict[int, str] = {}


@contextmanager
def no_side_effects(subject: str) -> Iterator[None]:
    """Opening a file, starting a program or opening a socket raises ``ContractViolation``."""
    _install()
    thread = threading.get_ident()
    _watched[thread] = subject
    try:
        yield
    finally:
        del _watched[thread]


@cache
def _install() -> None:
    sys.addaudithook(_notice)


def _notice(event: str, arguments: tuple[object, ...]) -> None:
    subject = _watched.get(threading.get_ident()) if event in _DEEDS else None
    if subject is not None:
        what = f" ({arguments[0]!r})" if arguments else ""
        raise ContractViolation(
            f"{subject}: it {_DEEDS[event]}{what}, but its answer may depend on its input only"
        )
