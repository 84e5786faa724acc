"""Running captured launches again: on a GPU by the native replayer, or by what plugins bring.

Here it is chosen which of the installed replayers runs a capture.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core.model.metric import Origin
from rpl_core.model.value_checks import require_value
from rpl_core.plugins.boundary import plugin_boundary
from rpl_vmreplay.hookspecs import REPLAYERS
from rpl_vmreplay.interfaces import (
    InputsRequest,
    InputsResult,
    Replayer,
    ReplayRequest,
    ReplayResult,
    ReserveRequest,
    ReserveResult,
)

if TYPE_CHECKING:
    from rpl_core.cli.session import Session
    from rpl_core.plugins.host import Contribution

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

    def compare_inputs(self, request: InputsRequest) -> InputsResult | None:
        with plugin_boundary(self._plugin, f"replayer {self.name!r}"):
            result = self._replayer.compare_inputs(request)
            return None if result is None else require_value(result, InputsResult)

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
    return GuardedReplayer(next(part for part in offered.contributions if part.value is wanted))


def chosen_replayer(session: Session, name: str | None) -> Replayer:
    """What was named, else the device of rpl's settings (``RPL_DEVICE``), else a GPU of ROCr.

    A device that no replayer stands for by its name is a GPU. Raises as the catalogue does for unknown names,
    and ``UsageError`` for a setting that can't be.
    """
    wanted = session.configuration.resolve("device", name).value
    if wanted is None:
        return replayer_of(session, DEFAULT_REPLAYER)
    offered, devices = session.host.catalog.of(REPLAYERS), session.host.catalog.devices()
    known = {*offered.names, *(device for part in offered.contributions for device in part.value.devices)}
    if wanted in known:
        return replayer_of(session, wanted)
    gpus = {text.casefold() for device in devices for text in (device.name, device.architecture)}
    return replayer_of(session, DEFAULT_REPLAYER if wanted.casefold() in gpus else wanted)


def without_gpu(session: Session, used: Replayer, isa: str) -> str | None:
    """What to say where ``used`` lacks a GPU, a runtime or its program: another one that needs none of it."""
    for contribution in session.host.catalog.of(REPLAYERS).contributions:
        other, processor = contribution.value, isa.rpartition("--")[2].partition(":")[0]
        fits = [device for device in other.devices if processor and device.startswith(processor)]
        if other.name != used.name and other.origin is not Origin.MEASURED and fits:
            absent = "" if other.missing() is None else ", once rpl-native is there"
            return f"run it without a GPU: --device {fits[0]}{absent}"
    return None


def logging_replayer(session: Session, name: str | None = None) -> Replayer:
    """As ``replayer_of``; without a name the first that logs accesses, else the usual one."""
    if name is not None:
        return replayer_of(session, name)
    offered = session.host.catalog.of(REPLAYERS).contributions
    logs = next((part for part in offered if part.value.logs_accesses), None)
    return replayer_of(session, DEFAULT_REPLAYER) if logs is None else GuardedReplayer(logs)
