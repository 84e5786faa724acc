"""The renderer ``sarif``: findings that have a line of source, for code scanning and editors.

SARIF 2.1.0 (https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html). A finding without a line has
no place in a source and is left out; the reports hold it.
"""

from __future__ import annotations

import json
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from rpl_analysis.options import NAMES
from rpl_core.interfaces.renderer import Renderer, RenderRequest
from rpl_core.interfaces.section import SectionRequest
from rpl_core.text.safety import harmless_json, readable
from rpl_report.documents import report_documents
from rpl_report.sections import claims_of

if TYPE_CHECKING:
    from rpl_core.interfaces.section import Place

__all__ = ["SarifRenderer"]

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_RULE = "rpl/hot-line"
_LONGEST = 400


class SarifRenderer(Renderer):
    name = "sarif"
    summary = "findings with a line of source, for code scanning and editors"
    suffix = ".sarif"

    def render(self, request: RenderRequest) -> str:
        from rpl_core import __version__

        documents = report_documents(request.documents)
        names = documents.shown_names(request.options[NAMES])
        asked = SectionRequest(MappingProxyType(request.documents), short_names=names)
        places = [place for claim in claims_of(request.sections, asked) for place in claim.places]
        provenance = documents.profile.provenance
        rule = {
            "id": _RULE,
            "shortDescription": {"text": "A line of source with much of a kernel's time."},
            "defaultConfiguration": {"level": "note"},
        }
        driver = {"name": "rpl", "semanticVersion": __version__, "rules": [rule]}
        run = {
            "tool": {"driver": driver},
            "columnKind": "unicodeCodePoints",
            "properties": {"origin": provenance.origin if provenance else "unknown"},
            "results": [_result(place) for place in places],
        }
        document = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
        return harmless_json(json.dumps(document, indent=2, ensure_ascii=False)) + "\n"


def _result(place: Place) -> dict[str, Any]:
    """Paths become references to a URI: nothing in them is a scheme, a query or a fragment."""
    path = place.file.encode("utf-8", "backslashreplace").decode()
    uri = f"file://{quote(path)}" if path.startswith("/") else quote(path)
    location = {"artifactLocation": {"uri": uri}, "region": {"startLine": place.line}}
    return {
        "ruleId": _RULE,
        "ruleIndex": 0,
        "level": "note",
        "message": {"text": readable(place.text, _LONGEST)},
        "locations": [{"physicalLocation": location}],
    }
