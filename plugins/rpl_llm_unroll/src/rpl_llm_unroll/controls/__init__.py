"""Wrong versions of a kernel on purpose, which an equivalence check must notice to be believed."""

from __future__ import annotations

from rpl_llm_unroll.controls.candidates import controls_of

__all__ = ["controls_of"]
