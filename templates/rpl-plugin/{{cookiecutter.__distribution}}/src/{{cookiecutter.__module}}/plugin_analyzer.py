"""What {{ cookiecutter.__distribution }} offers to rpl: read it as a table of contents.

Import the work inside the functions, so that `rpl plugins list` stays quick.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core import hookimpl

if TYPE_CHECKING:
    from rpl_core.interfaces.analyzer import Analyzer
    from rpl_core.interfaces.document import DocumentSection
    from rpl_core.interfaces.section import ReportSection

#: The version of rpl's hook contract that this plugin was written for.
RPL_API = 2


@hookimpl
def rpl_analyzers() -> tuple[Analyzer, ...]:
    """Every analysis runs these."""
    from {{ cookiecutter.__module }}.longest import LongestAnalyzer

    return (LongestAnalyzer(),)


@hookimpl
def rpl_documents() -> tuple[DocumentSection, ...]:
    """What profile.json shows of it."""
    from {{ cookiecutter.__module }}.longest import LongestSection

    return (LongestSection(),)


@hookimpl
def rpl_report_sections() -> tuple[ReportSection, ...]:
    """What the reports show of it."""
    from {{ cookiecutter.__module }}.longest import LongestReport

    return (LongestReport(),)
