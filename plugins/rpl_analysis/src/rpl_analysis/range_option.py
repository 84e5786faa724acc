"""``--range``: analyse the work of one range of the application.

Apart from ``options``, which the modules below ``phases`` use, and from ``phases``, which loads numpy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core.interfaces.options import CommandOption

if TYPE_CHECKING:
    from rpl_core.model.recording import Recording

__all__ = ["RANGE"]


def _within(recording: Recording, name: str) -> Recording:
    from rpl_analysis.phases import restricted

    return restricted(recording, name)


RANGE: CommandOption[str | None] = CommandOption(
    name="range",
    commands=("profile", "analyze", "what-if", "export", "compare"),
    parse=str,
    default=None,
    help="Only the work that roctx ranges of this name launched; '' is all work.",
    metavar="NAME",
    recorded=True,
    change_recording=_within,
)
