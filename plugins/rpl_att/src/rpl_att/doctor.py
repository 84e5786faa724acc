"""What ``rpl doctor`` says about thread traces."""

from __future__ import annotations

import os

from rpl_att.collector.settings import AttSettings
from rpl_att.decoder_library import REMEDY, find_decoder
from rpl_core.errors import MissingError
from rpl_core.interfaces.doctor import DoctorCheck, DoctorReport, DoctorStatus

_NEEDED_FOR = "`rpl profile --deep-analysis` and raw .att files (decoded traces are read without it)"


class DecoderCheck(DoctorCheck):
    name = "trace-decoder"
    summary = "AMD's decoder of thread traces"

    def __init__(self, settings: AttSettings) -> None:
        self._settings = settings

    def check(self) -> DoctorReport:
        try:
            folder = find_decoder(self._settings.decoder_variables(os.environ))
        except MissingError as error:
            return DoctorReport(DoctorStatus.BROKEN, error.fact, _NEEDED_FOR, error.next_step)
        if folder is None:
            return DoctorReport(DoctorStatus.MISSING, "no trace decoder was found", _NEEDED_FOR, REMEDY)
        return DoctorReport(DoctorStatus.OK, f"trace decoder in {folder}")
