"""All documents as one JSON object, for programs."""

from __future__ import annotations

import json

from rpl_core.interfaces.renderer import Renderer, RenderRequest
from rpl_core.text.safety import harmless_json


class JsonRenderer(Renderer):
    name = "json"
    summary = "all documents in one JSON object"
    suffix = ".json"

    def render(self, request: RenderRequest) -> str:
        documents = {name: document.model_dump(mode="json") for name, document in request.documents.items()}
        return harmless_json(json.dumps(documents, indent=2, ensure_ascii=False, allow_nan=False)) + "\n"
