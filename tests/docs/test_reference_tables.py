"""The tables of the pages equal the code: options, commands, settings, exit codes, fields, quantities."""

from __future__ import annotations

import json
import re
import sys
from importlib import resources

import click
import pytest

from rpl_analysis.bottleneck import builtin_rules
from rpl_analysis.runtime.timing import MODERATE_CV, STABLE_CV
from rpl_core.cli.installation import json_schema
from rpl_core.cli.main import COMMANDS, rpl
from rpl_core.cli.profile import analyze, profile
from rpl_core.cli.session import Session
from rpl_core.documents import sections_of
from rpl_core.errors import ExitCode
from rpl_core.interfaces.document import DocumentContract
from rpl_core.plugins.discovery import PluginSelection
from rpl_core.plugins.host import create_host

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

GUIDE = "docs/USER_GUIDE.md"
_BROUGHT = json.loads((resources.files("rpl_amdgpu") / "packages.json").read_text(encoding="utf-8"))
#: Commands of plugins, but for those that have a page of their own.
OF_PLUGINS = set(_BROUGHT["commands"]) - {"att", "llm-optimize", "prompt"}


def _options_of(command: click.Command) -> set[str]:
    return {
        name
        for parameter in command.get_params(click.Context(command))
        if isinstance(parameter, click.Option) and not parameter.hidden
        for name in (*parameter.opts, *parameter.secondary_opts)
    } - {"-h", "--help"}


def _names(documentation, cell: str) -> set[str]:
    return {span.split()[0] for span in documentation.spans(cell)}


@pytest.mark.parametrize(("command", "column"), [(profile, 1), (analyze, 2)])
def test_the_options_table_equals_the_command_line(documentation, command, column):
    rows = documentation.rows(GUIDE, "option", "`profile`", "`analyze`", "meaning")
    listed = {name for row in rows if row[column] == "yes" for name in _names(documentation, row[0])}
    assert listed == _options_of(command)


def test_global_options_are_documented(documentation):
    text = documentation.page(GUIDE).read_text(encoding="utf-8")
    spans = {span.split()[0] for span in documentation.spans(text)}
    assert _options_of(rpl) <= spans


def test_the_table_of_commands_is_complete(documentation):
    rows = documentation.rows(GUIDE, "command", "does")
    listed = {documentation.spans(row[0])[0].removeprefix("rpl ") for row in rows}
    assert listed == set(COMMANDS) | OF_PLUGINS


def test_the_settings_table_equals_the_settings(documentation):
    rows = documentation.rows(GUIDE, "setting", "variable", "default", "meaning")
    listed = {row[0].strip("`"): (row[1].strip("`"), row[2]) for row in rows}
    settings = Session().full_configuration.settings
    expected = {s.name: (s.variable, _shown(s.default)) for s in settings}
    assert listed == expected


def _shown(default: object) -> str:
    if default is None or default == ():
        return ""
    return str(default).lower() if isinstance(default, bool) else str(default)


def test_the_table_of_exit_codes_equals_the_code(documentation):
    rows = documentation.rows(GUIDE, "code", "name", "meaning")
    assert {int(row[0]): row[1].strip("`") for row in rows} == {int(c): c.name for c in ExitCode}


def test_the_stability_thresholds_are_the_documented_ones(documentation):
    rows = documentation.rows(GUIDE, "cv", "class")
    assert rows == [
        [f"<= {STABLE_CV:.2f}", "stable"],
        [f"<= {MODERATE_CV:.2f}", "moderate"],
        [f"> {MODERATE_CV:.2f}", "unstable"],
    ]


def _fields(schema: dict) -> set[str]:
    parts = [schema, *schema.get("$defs", {}).values()]
    return {name for part in parts for name in part.get("properties", {})}


@pytest.fixture(scope="module")
def schema_of():
    offered = create_host(PluginSelection(), config={}).catalog.documents().contributions
    contracts = {c.value.name: c.value for c in offered if isinstance(c.value, DocumentContract)}
    sections = sections_of(offered)
    return lambda name: json_schema(contracts[name], [c.value for c in sections if c.value.document == name])


@pytest.mark.parametrize("name", ["profile", "roofline", "dag", "analysis", "run", "optimize"])
def test_every_field_of_a_document_is_documented(documentation, schema_of, name):
    text = documentation.page("docs/data-formats.md").read_text(encoding="utf-8")
    spans = {re.split(r"[^\w]", span)[0] for span in documentation.spans(text)}
    assert _fields(schema_of(name)) - spans == set()


def test_every_quantity_and_rule_of_the_classifier_is_documented(documentation):
    rules = builtin_rules()
    rows = documentation.rows("docs/data-formats.md", "quantity", "0..1", "from")
    tested = {condition.quantity for rule in rules for condition in rule.conditions}
    assert tested == {row[0].strip("`") for row in rows}
    listed = documentation.rows("docs/WHITEPAPER.md", "priority", "rule", "label", "when")
    assert [(int(r[0]), r[1], r[2].strip("`")) for r in listed] == [
        (rule.priority, rule.id, rule.label.value) for rule in sorted(rules, key=lambda r: -r.priority)
    ]


def test_every_runtime_dependency_has_its_reason(documentation):
    rows = documentation.rows("docs/dependencies.md", "library", "distributions", "used for", "instead of")
    listed = {row[0].strip("`"): set(row[1].split(", ")) for row in rows}
    required: dict[str, set[str]] = {}
    for folder in (documentation.root, *sorted((documentation.root / "plugins").iterdir())):
        project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        for text in project.get("dependencies", ()):
            name = re.split(r"[^\w-]", text, maxsplit=1)[0]
            required.setdefault(name, set()).add(project["name"].removeprefix("rpl-"))
    assert listed == {name: users for name, users in required.items() if not name.startswith("rpl-")}
    assert 'requires-python = ">=3.10"' in documentation.page("pyproject.toml").read_text(encoding="utf-8")


def test_the_formulas_of_the_roofline_page_are_those_of_the_device(documentation):
    rpl_gfx942 = pytest.importorskip("rpl_gfx942.products")
    text = documentation.page("docs/ROOFLINE_DESIGN.md").read_text(encoding="utf-8")
    spans = set(documentation.spans(text))
    lacking = []
    for quantity in rpl_gfx942.COUNTER_MAP.quantities:
        if not quantity.additive or quantity.name in {"waves", "int_ops", "mfma_flops_f8"}:
            continue
        if quantity.name not in spans and quantity.name != "flops_valu_width":
            lacking.append(quantity.name)
        lacking += [f.expression for f in quantity.formulas if not _stated(f.expression, spans, text)]
    assert lacking == []


def _stated(expression: str, spans: set[str], text: str) -> bool:
    return expression in spans or expression in text


def test_the_ceilings_of_the_roofline_page_are_those_of_the_device(documentation):
    device = pytest.importorskip("rpl_gfx942.plugin")
    products = {model.name: model for model in device.rpl_device_models()}
    rows = documentation.rows(
        "docs/ROOFLINE_DESIGN.md",
        "product", "CU", "XCD", "clock MHz", "HBM spec GB/s", "HBM published GB/s",
    )  # fmt: skip
    assert {row[0].lower() for row in rows} == set(products)
    for name, units, xcds, clock, spec, published in rows:
        model = products[name.lower()]
        hbm = {o: [c.peak_gbps for c in model.memory_ceilings if (c.level, c.origin.value) == ("hbm", o)]
               for o in ("spec", "published")}  # fmt: skip
        known = [model.compute_units, model.xcd_count, model.clock_mhz, *(hbm["spec"] or [None])]
        shown = ["unknown" if value is None else f"{value:g}" for value in known]
        assert [units, xcds, clock, spec] == shown
        assert sorted(map(float, re.findall(r"\d+(?:\.\d+)?", published))) == sorted(hbm["published"])
