"""Agents (GPUs, CPUs) from the driver facts that each format carries under its own spelling.

rocpd and JSON hold them as ``snake_case`` keys, CSV as ``Title_Case`` columns; both name the same fields
(docs/reference/formats.md, 2.6).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from rpl_core.model.trace import Agent

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["agent_from_facts", "architecture_of_version", "parsed_facts", "whole_number"]

_KINDS = {"1": "CPU", "2": "GPU", "CPU": "CPU", "GPU": "GPU", "NIC": "NIC"}
_LOCAL_HEAPS = (1, 2)  # HSA heap types: frame buffer public and private
_BYTES_PER_KB = 1024
_NUMBER_LIMIT = 1 << 53  # sums and products of such numbers are numbers still
# Longest agent description that is parsed; real ones have about 150 kB (caches of 304 CUs).
_LARGEST_FACTS = 8 << 20


def whole_number(value: object) -> int | None:
    """``value`` as a non-negative integer, None where it says nothing."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int):
        return value if 0 <= value < _NUMBER_LIMIT else None
    try:
        number = float(str(value))
    except ValueError:
        return None
    return int(number) if 0 <= number < _NUMBER_LIMIT and number.is_integer() else None


def _fact(value: object) -> int | None:
    """A driver fact: zero means that the driver did not fill it in."""
    return whole_number(value) or None


def _text(value: object) -> str | None:
    text = str(value).strip() if value is not None else ""
    return text or None


def parsed_facts(text: object) -> Mapping[str, Any]:
    """The JSON object in ``text``; empty when it is none."""
    if not isinstance(text, str) or len(text) > _LARGEST_FACTS:
        return {}
    try:
        facts = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return facts if isinstance(facts, dict) else {}


def architecture_of_version(version: int | None) -> str | None:
    """``gfx942`` for 90402: decimal major, minor, stepping, the last two written in hex.

    See docs/reference/formats.md, 2.6.
    """
    if not version:
        return None
    major, minor, stepping = version // 10000, version // 100 % 100, version % 100
    return f"gfx{major}{minor:x}{stepping:x}"


def _local_memory_bytes(facts: Mapping[str, Any]) -> int | None:
    # local_mem_size is 0 on current drivers; the memory banks hold the truth
    # (docs/reference/formats.md, 2.6).
    banks = facts.get("mem_banks")
    sizes = [
        whole_number(bank.get("size_in_bytes")) or 0
        for bank in (banks if isinstance(banks, list) else [])
        if isinstance(bank, dict) and bank.get("heap_type") in _LOCAL_HEAPS
    ]
    return sum(sizes) or _fact(facts.get("local_mem_size"))


def agent_from_facts(node: str, index: int, kind: object, facts: Mapping[str, Any], name: object) -> Agent:
    """Build an agent from ``snake_case`` driver facts. ``name`` is "gfx942" on a GPU."""
    label = _text(name) or _text(facts.get("name"))
    agent_kind = _KINDS.get(str(kind).upper(), "GPU" if (label or "").startswith("gfx") else "CPU")
    if agent_kind != "GPU":
        return Agent(node, index, agent_kind, product=_text(facts.get("product_name")) or label)
    lds_kb = _fact(facts.get("lds_size_in_kb"))
    version = _fact(facts.get("gfx_target_version"))
    return Agent(
        node=node,
        index=index,
        kind=agent_kind,
        architecture=label if label and label.startswith("gfx") else architecture_of_version(version),
        product=_text(facts.get("product_name")),
        chip_id=_fact(facts.get("device_id")),
        compute_units=_fact(facts.get("cu_count")),
        xcd_count=_fact(facts.get("num_xcc")),
        simd_per_cu=_fact(facts.get("simd_per_cu")),
        max_waves_per_simd=_fact(facts.get("max_waves_per_simd")),
        wave_size=_fact(facts.get("wave_front_size")),
        lds_bytes_per_cu=lds_kb * _BYTES_PER_KB if lds_kb else None,
        clock_mhz=_fact(facts.get("max_engine_clk_fcompute")),
        local_memory_bytes=_local_memory_bytes(facts),
    )
