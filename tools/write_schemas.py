"""Write the JSON schemas of all documents to docs/schemas/, and their shapes; tests keep both true."""

from __future__ import annotations

import json
from pathlib import Path

from rpl_core.contracts.schema import DOCUMENT_NAMES, json_schema
from rpl_core.contracts.shape_table import TABLE
from rpl_core.contracts.shapes import document_shapes
from rpl_core.files.atomic import write_atomic

SCHEMAS = Path(__file__).parent.parent / "docs" / "schemas"


def main() -> None:
    SCHEMAS.mkdir(parents=True, exist_ok=True)
    for name in DOCUMENT_NAMES:
        write_atomic(SCHEMAS / f"{name}.schema.json", json.dumps(json_schema(name), indent=2) + "\n")
    write_atomic(TABLE, json.dumps(document_shapes(), separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
