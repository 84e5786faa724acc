"""``rpl analyze --full``: every node and edge beside dag.json."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("rpl_rocprofv3")

_COMMAND = "from rpl_core.cli import main; raise SystemExit(main())"


def _analyze(*arguments: str) -> None:
    subprocess.run(
        [sys.executable, "-c", _COMMAND, "analyze", *arguments], check=True, capture_output=True, timeout=120
    )


@pytest.mark.data
def test_full_writes_the_columns_and_a_later_analysis_leaves_no_stale_ones(rpl_shared_data, tmp_path) -> None:
    recording = rpl_shared_data / "rocpd" / "synthetic-gfx942" / "trace_results.db"
    _analyze(str(recording), "-o", str(tmp_path), "--full")
    columns = tmp_path / "dag_full.npz"
    first = columns.read_bytes()
    arrays = np.load(columns)
    dag = json.loads((tmp_path / "dag.json").read_text())
    assert arrays["begin_ns"].size == dag["nodes"] + dag["host_syncs"]
    durations = arrays["end_ns"] - arrays["begin_ns"]
    assert int(durations[arrays["on_path"]].sum()) == dag["critical_path_ns"]
    _analyze(str(recording), "-o", str(tmp_path), "--full")
    assert columns.read_bytes() == first
    _analyze(str(recording), "-o", str(tmp_path))
    assert not columns.exists()
