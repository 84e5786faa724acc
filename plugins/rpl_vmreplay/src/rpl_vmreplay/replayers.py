"""Which of the installed replayers runs a capture."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core.model.value_checks import require_value
from rpl_core.plugins.boundary import plugin_boundary
from rpl_vmreplay.hookspecs import REPLAYERS
from rpl_vmreplay.interfaces.replayer import Replayer, ReplayResult, ReserveResult

if TYPE_CHECKING:
    from rpl_core.cli.session import Session
    from rpl_core.plugins.relay import Contribution
    from rpl_vmreplay.interfaces.replayer import ReplayRequest, ReserveRequest

DEFAULT_REPLAYER = "hsa"


class GuardedReplayer(Replayer):
    """Passes every call on and looks at the answer: what a replayer does wrong names its plugin."""

    def __init__(self, offered: Contribution[Replayer]) -> None:
        self.name = offered.value.name
        self.summary = offered.value.summary
        self.devices = offered.value.devices
        self.origin = offered.value.origin
        self.logs_accesses = offered.value.logs_accesses
        self.rounds = offered.value.rounds
        self._plugin = offered.plugin
        self._replayer = offered.value

    def missing(self) -> str | None:
        with plugin_boundary(self._plugin, f"replayer {self.name!r}"):
            reason = self._replayer.missing()
            return None if reason is None else require_value(reason, str)

    def replay(self, request: ReplayRequest) -> ReplayResult:
        with plugin_boundary(self._plugin, f"replayer {self.name!r}"):
            return require_value(self._replayer.replay(request), ReplayResult)

    def reserve(self, request: ReserveRequest) -> ReserveResult:
        with plugin_boundary(self._plugin, f"replayer {self.name!r}"):
            return require_value(self._replayer.reserve(request), ReserveResult)


def replayer_of(session: Session, name: str) -> Replayer:
    """By its name, or by that of a device that it stands for. Raises as the catalogue does."""
    offered = session.host.catalog.of(REPLAYERS)
    for contribution in offered.contributions:
        if name in contribution.value.devices:
            return GuardedReplayer(contribution)
    wanted = offered.get(name)
    return GuardedReplayer(next(one for one in offered.contributions if one.value is wanted))


def logging_replayer(session: Session, name: str | None = None) -> Replayer:
    """As ``replayer_of``; without a name the first that logs accesses, else the usual one."""
    if name is not None:
        return replayer_of(session, name)
    offered = session.host.catalog.of(REPLAYERS).contributions
    found = next((one for one in offered if one.value.logs_accesses), None)
    return replayer_of(session, DEFAULT_REPLAYER) if found is None else GuardedReplayer(found)
