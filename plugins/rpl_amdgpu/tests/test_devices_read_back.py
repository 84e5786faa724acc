"""What `rpl devices` prints of every product, read as people do, against the values of the device plugins."""

from __future__ import annotations

import re

import pytest

import rpl_gfx90a.plugin
import rpl_gfx942.plugin
import rpl_gfx950.plugin
import rpl_gfx1030.plugin
import rpl_gfx1100.plugin
from rpl_core.model.device import CeilingOrigin, DeviceModel, Pipe

PLUGINS = {
    "gfx90a": rpl_gfx90a.plugin,
    "gfx942": rpl_gfx942.plugin,
    "gfx950": rpl_gfx950.plugin,
    "gfx1030": rpl_gfx1030.plugin,
    "gfx1100": rpl_gfx1100.plugin,
}
MODELS = [(name, model) for name, plugin in PLUGINS.items() for model in plugin.rpl_device_models()]
#: The names of docs/USER_GUIDE.md; what has no value is `-`.
FACTS = (
    *("architecture", "partition", "compute_units", "xcd_count", "simd_per_cu", "wave_size"),
    *("max_waves_per_simd", "lds_bytes_per_cu", "clock_mhz", "l2_bytes", "l2_channels", "llc_bytes"),
)


def _cells(line: str) -> list[str]:
    return re.split(r"\s{2,}", line.strip())


def _ceiling(model: DeviceModel, what: str) -> float | None:
    """The specified rate, found by looking at each ceiling."""
    if what == "hbm":
        rates = [
            c.peak_gbps for c in model.memory_ceilings if c.level == what and c.origin is CeilingOrigin.SPEC
        ]
    else:
        rates = [
            c.peak_gflops
            for c in model.compute_ceilings
            if (c.data_type, c.pipe, c.origin) == (what, Pipe.VALU, CeilingOrigin.SPEC)
        ]
    return rates[0] if rates else None


def test_each_row_of_the_list(rpl_cli):
    head, *lines = rpl_cli("devices").assert_ok().stdout.splitlines()
    assert _cells(head) == ["DEVICE", "ARCHITECTURE", "PRODUCT", "CU", "GB/S", "GFLOP/S F32", "PLUGIN"]
    shown = {line.split()[0]: _cells(line) for line in lines}
    for plugin, model in MODELS:
        name, architecture, product, units, rate, speed, by = shown[model.name]
        assert (name, architecture, product, by) == (model.name, model.architecture, model.product, plugin)
        assert units == ("-" if model.compute_units is None else str(model.compute_units)), name
        for text, known, least in (
            (rate, _ceiling(model, "hbm"), 0.05),
            (speed, _ceiling(model, "F32"), 0.5),
        ):
            assert (text == "-") == (known is None), name
            assert known is None or float(text) == pytest.approx(known, abs=least), name


def test_the_document_of_the_list_has_facts_only(rpl_cli):
    found = {one["name"]: one for one in rpl_cli("devices", "--json").json()["devices"]}
    for plugin, model in MODELS:
        facts = {name: getattr(model, name) for name in FACTS}
        known = {"name": model.name, "product": model.product, "plugin": plugin}
        assert found[model.name] == known | facts | {"chip_ids": list(model.chip_ids)}


@pytest.mark.parametrize("plugin", PLUGINS)
def test_each_page_of_a_product(rpl_cli, plugin):
    models = [model for name, model in MODELS if name == plugin]
    for architecture in dict.fromkeys(model.architecture for model in models):
        text = rpl_cli("devices", "info", architecture.upper()).assert_ok().stdout
        pages = [f"device {page}" for page in re.split(r"^device ", text, flags=re.MULTILINE)[1:]]
        same = [model for model in models if model.architecture == architecture]
        assert len(pages) == len(same)
        documents = rpl_cli("devices", "info", architecture, "--json").json()["devices"]
        for page, model, document in zip(pages, same, documents, strict=True):
            _page_says(page, model)
            _document_says(document, model, plugin)


def _page_says(page: str, model: DeviceModel) -> None:
    facts, rates, counted = (part.splitlines() for part in page.split("\n\n")[:3])
    said = [_cells(line) for line in facts]
    assert said[0] == ["device", f"{model.name}: {model.product}"]
    values = {row[0]: " ".join(row[1:]) for row in said[1:]}
    for name in FACTS:
        value = getattr(model, name)
        assert values[name.replace("_", " ")] == ("-" if value is None else str(value)), name
    assert values["source"] == re.sub(r"\s{2,}", " ", model.source)
    assert [" ".join(row[1:]) for row in said if row[0] == "unknown"] == list(model.unknown_facts)

    each = [
        *((f"{c.data_type} {c.pipe.value}", c.peak_gflops, "GFLOP/s", c) for c in model.compute_ceilings),
        *((c.level, c.peak_gbps, "GB/s", c) for c in model.memory_ceilings),
    ]
    if not each:
        assert rates == ["no ceilings: no source at hand states a rate"]
    else:
        starts = [line for line in rates[1:] if not line.startswith(" ")]
        for line, (what, rate, unit, ceiling) in zip(starts, each, strict=True):
            cells = _cells(line)
            number, of = cells[1].split()
            assert (cells[0], of, cells[2]) == (what, unit, ceiling.origin.value)
            assert float(number) == pytest.approx(rate, abs=0.051)

    rows = {cells[0]: cells[1:] for cells in map(_cells, counted[1:]) if len(cells) == 3}
    quantities = {one.name: one for one in model.counter_map.quantities}
    assert set(rows) == set(quantities)
    for name, quantity in quantities.items():
        parts, found = [name], set()
        while parts:  # of sums, and sums of those
            one = quantities.get(parts.pop())
            if one is not None and one.formulas:
                found.add(one.formulas[0].exactness.value)
            elif one is not None:
                parts.extend(one.sum_of)
        assert rows[name] == [quantity.unit, found.pop() if len(found) == 1 else "by part"]


def _document_says(document, model: DeviceModel, plugin: str) -> None:
    assert (document["name"], document["product"], document["plugin"]) == (model.name, model.product, plugin)
    assert [document[name] for name in FACTS] == [getattr(model, name) for name in FACTS]
    assert document["chip_ids"] == list(model.chip_ids)
    assert (document["source"], document["unknown_facts"]) == (model.source, list(model.unknown_facts))
    assert [
        (c["data_type"], c["pipe"], c["gflops"], c["origin"], c["source"])
        for c in document["compute_ceilings"]
    ] == [
        (c.data_type, c.pipe.value, c.peak_gflops, c.origin.value, c.source) for c in model.compute_ceilings
    ]
    assert [(c["level"], c["gbps"], c["origin"], c["source"]) for c in document["memory_ceilings"]] == [
        (c.level, c.peak_gbps, c.origin.value, c.source) for c in model.memory_ceilings
    ]
    assert document["recommended_counters"] == list(model.counter_map.recommended)
    # A quantity is counted, or said not to be: never both.
    counted = {name.replace("_", " ") for name in document["counted"]}
    assert set(document["counted"]) == {one.name for one in model.counter_map.quantities}
    for what, words in (("flops", "floating-point operations"), ("active lanes", "active lanes")):
        assert (what in counted) != (words in document["not_counted"])


@pytest.mark.parametrize("model", [model for _, model in MODELS], ids=lambda model: model.name)
def test_work_of_each_type_has_a_counter_and_a_rate_of_its_pipe(model: DeviceModel) -> None:
    """Operations on whole numbers are none on floating-point ones, whichever pipe does them."""
    quantities = {one.name for one in model.counter_map.quantities}
    for work in model.counter_map.work:
        assert work.quantity in quantities
        assert work.floating == (not work.data_type.startswith("I")), work.data_type
        pipe, kind = work.quantity.split("_")[0], work.quantity.split("_")[-1]
        assert (pipe.upper(), kind.upper()) == (work.pipe.name, work.data_type)
        assert ("flops" in work.quantity) == work.floating
