"""tools/mutants: what a trial leaves behind, and which map belongs to which draw."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

MUTANTS = Path(__file__).resolve().parents[2] / "tools" / "mutants"


def run(script: str, *arguments: object) -> str:
    """In a process of its own: trials are forks of one without threads."""
    words = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(MUTANTS)!r})\n{script}"]
    done = subprocess.run([*words, *map(str, arguments)], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def is_running(process: int) -> bool:
    status = Path(f"/proc/{process}/stat")
    return status.exists() and status.read_text().rpartition(")")[2].split()[0] != "Z"


def test_what_a_trial_started_ends_with_it(tmp_path):
    test = tmp_path / "test_it.py"
    test.write_text(
        "import pathlib, subprocess\n"
        "def test_it():\n"
        "    left = subprocess.Popen(['sleep', '600'])\n"
        f"    pathlib.Path({str(tmp_path / 'left')!r}).write_text(str(left.pid))\n"
    )
    status = run(
        "from pathlib import Path; import trial\n"
        "child = trial.start(Path(sys.argv[1]), None, [sys.argv[1]], 60.0, Path(sys.argv[2]))\n"
        "print(trial.status_of(child))",
        test,
        tmp_path / "log",
    )
    assert status == "0", (tmp_path / "log").read_text()
    left = int((tmp_path / "left").read_text())
    for _ in range(500):
        if not is_running(left):
            return
        time.sleep(0.01)
    raise AssertionError("it still runs")


def test_a_session_that_broke_is_told_from_one_that_passed(tmp_path):
    """What nobody waited for is an error when pytest ends, and no test's failure."""
    (tmp_path / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n")
    test = tmp_path / "test_it.py"
    test.write_text(
        "class Left:\n"
        "    def __init__(self): self.me = self\n"
        "    def __del__(self): raise ValueError('left')\n"
        "def test_it():\n"
        "    import gc\n"
        "    gc.collect(); gc.disable()\n"
        "    Left()\n"
    )
    status = run(
        "from pathlib import Path; import trial\n"
        "child = trial.start(Path(sys.argv[1]), None, [sys.argv[1]], 60.0, Path(sys.argv[2]))\n"
        "print(trial.status_of(child) == trial.SESSION_BROKE)",
        test,
        tmp_path / "log",
    )
    assert status == "True", (tmp_path / "log").read_text()


def test_a_statement_that_no_test_comes_by_has_no_tests(tmp_path):
    script = (
        "from pathlib import Path; import covering; root = Path(sys.argv[1]); kept = root / 'kept'\n"
        "test = root / 'test_none.py'; test.write_text('def test_none(): pass')\n"
        "(root / 'rpl_core').mkdir()\n"
        "covering.map_tests([], ['test_none.py'], root, kept, 1)\n"
        "found = covering.covering_tests(0, 'rpl_core/a.py', 'tests', root, kept)\n"
        "print(found, covering.passing_tests(kept))"
    )
    assert run(script, tmp_path) == "[] {'test_none.py::test_none'}"


def test_another_draw_of_a_seed_is_mapped_anew():
    script = (
        "import run; row = {'path': 'a.py', 'line': 1, 'after': ['x\\n']}\n"
        "one = {'seed': 7, 'mutants': [row]}; other = {'seed': 7, 'mutants': [{**row, 'line': 2}]}\n"
        "marked = {'seed': 7, 'mutants': [{**row, 'outcome': 'caught'}]}\n"
        "print(run._name_of(one) == run._name_of(marked), run._name_of(one) == run._name_of(other))"
    )
    assert run(script) == "True False"
