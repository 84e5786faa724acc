"""Write the JSON schemas of all documents to docs/schemas/, and the shapes of contracts beside them.

Uses every installed plugin of this repository, as a user's `rpl schema` does; tests keep the files true.
"""

from __future__ import annotations

import inspect
import json
from pathlib import Path

from rpl_core.cli.installation import json_schema
from rpl_core.documents import sections_of
from rpl_core.files import write_atomic
from rpl_core.interfaces.document import DocumentContract, DocumentKind
from rpl_core.plugins.discovery import PluginSelection
from rpl_core.plugins.host import create_host
from rpl_testkit.document_shapes import document_shape

SCHEMAS = Path(__file__).parent.parent / "docs" / "schemas"


def schemas() -> dict[Path, str]:
    """Every generated file with its text."""
    offered = create_host(PluginSelection(), config={}).catalog.documents().contributions
    texts: dict[Path, str] = {}
    for contribution in offered:
        contract = contribution.value
        if not isinstance(contract, DocumentContract):
            continue
        sections = [c.value for c in sections_of(offered) if c.value.document == contract.name]
        schema = json.dumps(json_schema(contract, sections), indent=2, ensure_ascii=False)
        texts[SCHEMAS / f"{contract.name}.schema.json"] = f"{schema}\n"
        if isinstance(contract, DocumentKind):
            beside = Path(inspect.getfile(contract.model())).with_name("shapes") / f"{contract.name}.json"
            texts[beside] = json.dumps(document_shape(contract.model()), separators=(",", ":")) + "\n"
    return texts


def main() -> None:
    for path, text in schemas().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, text)


if __name__ == "__main__":
    main()
