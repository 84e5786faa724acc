"""The built script and style of the page, and the policy under which they alone may run."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files

import attrs
from markupsafe import Markup

__all__ = ["Assets", "load_assets"]

#: Before anything is drawn: what only works with a script may take its room.
_EARLY_SCRIPT = 'document.documentElement.className="js"'


@attrs.frozen
class Assets:
    """``early_script`` runs in the head; ``licence`` is that of the plotting library inside the script."""

    early_script: Markup
    script: Markup
    style: Markup
    licence: str
    policy: str


@cache
def load_assets() -> Assets:
    """What ``web/`` was built into; the policy names both by hash, so nothing else is ever executed."""
    folder = files("rpl_report.html") / "assets"
    script, style = (
        (folder / name).read_text(encoding="utf-8").strip() for name in ("report.js", "report.css")
    )
    policy = "; ".join(
        (
            "default-src 'none'",
            f"script-src '{_hash(_EARLY_SCRIPT)}' '{_hash(script)}'",
            f"style-src '{_hash(style)}'",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )
    return Assets(
        early_script=Markup(_EARLY_SCRIPT),  # noqa: S704 - a constant
        script=Markup(script),  # noqa: S704 - built from web/, checked by the tests
        style=Markup(style),  # noqa: S704
        licence=(folder / "LICENSE.uPlot.txt").read_text(encoding="utf-8").strip(),
        policy=policy,
    )


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode('utf-8')).digest()).decode('ascii')}"
