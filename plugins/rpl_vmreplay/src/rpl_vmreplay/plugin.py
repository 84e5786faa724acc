"""What rpl-vmreplay contributes beside its commands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rpl_core import hookimpl

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rpl_core.interfaces.doctor import DoctorCheck
    from rpl_core.interfaces.options import CommandOption

RPL_API = 1


@hookimpl
def rpl_options() -> tuple[CommandOption[Any], ...]:
    from rpl_vmreplay.isolate.native_tool import NATIVE_FOLDER

    return (NATIVE_FOLDER,)


@hookimpl
def rpl_doctor_checks(config: Mapping[str, Any]) -> tuple[DoctorCheck, ...]:
    from rpl_vmreplay.isolate.native_tool import NATIVE_FOLDER, CaptureToolCheck

    return (CaptureToolCheck(config.get(NATIVE_FOLDER.name)),)
