"""A candidate that launches its kernels otherwise is nothing that a captured launch can say anything of."""

from __future__ import annotations

from pathlib import Path

import pytest

from rpl_core.interfaces.options import Options
from rpl_optimize.interfaces.equivalence import (
    EquivalenceCheck,
    EquivalenceOptions,
    EquivalenceRequest,
    EquivalenceVerdict,
)
from rpl_vmreplay.compare.optimizer_options import CAPTURE
from rpl_vmreplay.optimizer_checks import CapturedLaunchCheck, VariedInputsCheck


@pytest.mark.parametrize("check", [CapturedLaunchCheck(), VariedInputsCheck()])
@pytest.mark.parametrize("same_launches", [True, False])
def test_other_launches_are_not_compared(
    check: EquivalenceCheck, same_launches: bool, tmp_path: Path
) -> None:
    options = EquivalenceOptions(plugins=Options().with_value(CAPTURE, tmp_path / "capture"))
    request = EquivalenceRequest(
        tmp_path,
        tmp_path,
        ("./app",),
        options=options,
        baseline_program=tmp_path / "a",
        candidate_program=tmp_path / "b",
        same_launches=same_launches,
    )
    report = check.check(request)
    assert report.verdict is EquivalenceVerdict.NOT_RUN
    assert ("launches the kernel otherwise" in report.evidence) is not same_launches
