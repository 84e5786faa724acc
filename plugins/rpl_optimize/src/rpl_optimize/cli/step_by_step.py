"""``--step-by-step``: a session that somebody else's program walks through, by lines of stdin and stdout.

Before each stage stdout gets one JSON object on a line, and the session waits for a line of stdin: ``go``
begins the stage, ``no`` declines an acceptance. Anything else, the end of the input too, leaves the session
open to ``--resume``. The last object says how it ended. What the stages found stands in the ledger.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rpl_core.text import encodable, harmless_json
from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_core.cli.output import Output
    from rpl_optimize.contracts.optimize import OptimizeDocument
    from rpl_optimize.loop.request import StageName

#: A longer line is no answer (chosen).
_LONGEST_ANSWER = 1000


@frozen
class StepByStep:
    """``root`` is the session's directory."""

    output: Output
    root: Path

    def hold(self, stage: StageName, candidate: int) -> None:
        """Raises ``KeyboardInterrupt`` unless the stage may begin."""
        if self._asked({"waiting_for": stage, "candidate": candidate}) != "go":
            raise KeyboardInterrupt

    def approve(self, diff: str, evidence: str) -> bool:
        """Whether a proven change is accepted. Raises ``KeyboardInterrupt`` where that stays open."""
        answer = self._asked({"waiting_for": "accept", "diff": diff, "evidence": evidence})
        if answer not in ("go", "no"):
            raise KeyboardInterrupt
        return answer == "go"

    def ended(self, document: OptimizeDocument) -> None:
        self._tell({"waiting_for": None, "optimize": document.model_dump(mode="json")})

    def _asked(self, told: Mapping[str, object]) -> str:
        self._tell(told)
        return sys.stdin.readline(_LONGEST_ANSWER).strip()

    def _tell(self, told: Mapping[str, object]) -> None:
        line = json.dumps({**told, "session": str(self.root)}, ensure_ascii=False, allow_nan=False)
        self.output.raw(harmless_json(encodable(line)) + "\n")
        sys.stdout.flush()
