"""Which of the installed replayers runs a capture."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_vmreplay.hookspecs import REPLAYERS

if TYPE_CHECKING:
    from rpl_core.cli.session import Session
    from rpl_vmreplay.interfaces.replayer import Replayer

DEFAULT_REPLAYER = "hsa"


def replayer_of(session: Session, name: str) -> Replayer:
    """By its name, or by that of a device that it stands for. Raises as the catalogue does."""
    offered = session.host.catalog.of(REPLAYERS)
    for contribution in offered.contributions:
        if name in contribution.value.devices:
            return contribution.value
    return offered.get(name)


def logging_replayer(session: Session, name: str | None = None) -> Replayer:
    """As ``replayer_of``; without a name the first that logs accesses, else the usual one."""
    if name is not None:
        return replayer_of(session, name)
    offered = (one.value for one in session.host.catalog.of(REPLAYERS).contributions)
    found = next((one for one in offered if one.logs_accesses), None)
    return found or replayer_of(session, DEFAULT_REPLAYER)
