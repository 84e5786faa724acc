"""What an installed ``hipcc`` launcher runs: finds this copy of rpl_testkit from any working directory."""

from __future__ import annotations

import sys
from pathlib import Path


def _start() -> int:
    # The script's folder comes first on the path and holds modules with everyday names.
    sys.path[0] = str(Path(__file__).resolve().parents[2])
    from rpl_testkit.hipcc_standin.main import main

    return main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(_start())
