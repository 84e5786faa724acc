"""Emptying the environment that rocprofv3 writes into its databases.

``rocpd_info_process.environment`` holds every environment variable of the application, API keys included
(docs/reference/formats.md, trap 9), and run directories are passed on. The column is overwritten and
never read.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rpl_core.model.diagnostic import Diagnostic
from rpl_rocprofv3.database import empty_column


def remove_environments(databases: Sequence[Path]) -> tuple[Diagnostic, ...]:
    """Overwrite the environments in place; one warning for the files in which that failed."""
    failed = [path for path in databases if not empty_column(path, "rocpd_info_process", "environment", "{}")]
    if not failed:
        return ()
    return (
        Diagnostic(
            code="collect.environment_kept",
            fact=f"the environment variables that rocprofv3 wrote to {failed[0].name} could not be removed",
            cause="the file is damaged, or there is no space to change it",
            remedy="do not share the file",
            count=len(failed),
        ),
    )
