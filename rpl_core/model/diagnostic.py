"""A diagnostic: something the user should know about an input or a result, with its remedy."""

from __future__ import annotations

from enum import Enum

from rpl_core.values import frozen


class Severity(str, Enum):
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


@frozen
class Diagnostic:
    """Fact, likely cause and remedy, with a stable ``code`` such as ``dispatch.zero_duration``.

    ``count`` is the number of rows or events concerned, ``where`` the artefact or plugin.
    """

    code: str
    fact: str
    severity: Severity = Severity.WARNING
    cause: str | None = None
    remedy: str | None = None
    where: str | None = None
    count: int | None = None
