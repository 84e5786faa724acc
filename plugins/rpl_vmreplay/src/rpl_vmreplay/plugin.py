"""What rpl-vmreplay contributes beside its commands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rpl_core import hookimpl

if TYPE_CHECKING:
    from rpl_core.interfaces.doctor import DoctorCheck
    from rpl_core.interfaces.options import CommandOption
    from rpl_vmreplay.interfaces import Replayer

RPL_API = 2


@hookimpl
def rpl_options() -> tuple[CommandOption[Any], ...]:
    from rpl_vmreplay.native_parts import NATIVE_FOLDER, REPLAY_LAUNCHER

    return (NATIVE_FOLDER, REPLAY_LAUNCHER)


@hookimpl
def rpl_doctor_checks(config: Mapping[str, Any]) -> tuple[DoctorCheck, ...]:
    from rpl_vmreplay.native_parts import CAPTURE_TOOL, REPLAYER, NativePartCheck, configured_folder

    folder = configured_folder(config)
    return (NativePartCheck(CAPTURE_TOOL, folder), NativePartCheck(REPLAYER, folder))


@hookimpl
def rpl_replayers(config: Mapping[str, Any]) -> tuple[Replayer, ...]:
    from rpl_vmreplay.native_parts import configured_folder
    from rpl_vmreplay.replay.native_replayer import NativeReplayer

    return (NativeReplayer(configured_folder(config)),)
