"""`python -m rpl_testkit.rocprofv3_standin`: the stand-in as a program."""

from __future__ import annotations

import sys

from rpl_testkit.rocprofv3_standin.main import main

sys.exit(main(sys.argv[1:]))
