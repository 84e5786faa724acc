"""The last self-test: told by `rpl doctor` and by documents of the same device; and what its document is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core import hookimpl

if TYPE_CHECKING:
    from rpl_core.interfaces.analyzer import Analyzer
    from rpl_core.interfaces.doctor import DoctorCheck
    from rpl_core.interfaces.document import DocumentContract

RPL_API = 2


@hookimpl
def rpl_doctor_checks() -> tuple[DoctorCheck, ...]:
    from rpl_selftest.kept import SelftestCheck, kept_path

    path = kept_path()
    return (SelftestCheck(),) if path is not None and path.is_file() else ()


@hookimpl
def rpl_documents() -> tuple[DocumentContract, ...]:
    from rpl_selftest.kept import SelftestContract

    return (SelftestContract(),)


@hookimpl
def rpl_analyzers() -> tuple[Analyzer, ...]:
    from rpl_selftest.kept import SelftestAnalyzer, kept_path

    path = kept_path()
    return (SelftestAnalyzer(),) if path is not None and path.is_file() else ()
