"""Recognise the product behind recorded agents: by chip id, by name, by size.

Several products may share a chip id or a size, so a recording can leave more than one open; then only what
they share is stated. Agents of other architectures are left to others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import attrs

from rpl_amdgpu.models import (
    NULLABLE,
    Family,
    GpuSize,
    Partition,
    Product,
    product_model,
    resized_product,
    sized_model,
    with_reason,
)
from rpl_core.interfaces.analyzer import AnalysisContext, AnalysisOutcome, Analyzer, Fact
from rpl_core.interfaces.doctor import DoctorCheck, DoctorReport, DoctorStatus
from rpl_core.model.device import DeviceModel
from rpl_core.model.diagnostic import Diagnostic, Severity
from rpl_core.model.trace import Agent
from rpl_core.plugins.entry_points import missing_provider

#: Memory partitions that split HBM, and into how many parts (docs/reference/devices.md, 1.3).
_MEMORY_SPLITS = {"NPS1": 1, "NPS2": 2, "NPS4": 4, "NPS8": 8}


def detect_device(family: Family, agents: tuple[Agent, ...]) -> DeviceModel | None:
    """The one model that describes all ``agents``; ``None`` when they are not all the same GPU of it."""
    models = [_model_of(family, agent) for agent in agents if agent.kind == "GPU"]
    if not models or models[0] is None or any(model != models[0] for model in models):
        return None
    return models[0]


def _model_of(family: Family, agent: Agent) -> DeviceModel | None:
    architecture = (agent.architecture or "").split(":")[0]
    if architecture not in ("", family.name):
        return None
    if impossible := _impossible(family, agent):
        # What the rest says holds: ceilings of caches would follow a number of XCDs that can't be.
        model = _model_of(family, attrs.evolve(agent, xcd_count=None))
        return None if model is None else attrs.evolve(model, impossible_facts=(impossible,))
    named = _by_name(family, agent)
    if not architecture and not named:
        return None
    models = [_as_described(family, product, agent) for product in named or _by_size(family, agent)]
    if len(models) == 1:
        return models[0]
    return _shared_facts(family, models, agent)


def _impossible(family: Family, agent: Agent) -> str | None:
    """What the recording says of its size that no GPU of the family can have, or ``None``."""
    per_xcd = max((product.units_per_xcd or 0 for product in family.products), default=0)
    units, xcds = agent.compute_units, agent.xcd_count
    if not per_xcd or not units or not xcds or units <= xcds * per_xcd:
        return None
    dies = "XCD" if xcds == 1 else "XCDs"
    return f"{units} CUs in {xcds} {dies}, but an XCD of {family.name} has at most {per_xcd}"


def _by_name(family: Family, agent: Agent) -> Sequence[Product]:
    """The products that the chip id names, else the product name; of several, those of the stated size."""
    by_chip = [product for product in family.products if agent.chip_id in product.chip_ids]
    named = _longest_named(family, agent.product or "")
    if by_chip and (both := [product for product in named if product in by_chip]):
        return both
    candidates = by_chip or named
    fitting = [product for product in candidates if partition_of(product, agent) is not None]
    return fitting if len(candidates) > 1 and fitting else candidates


def _longest_named(family: Family, label: str) -> Sequence[Product]:
    """Those whose name stands in ``label``, the longest name only: an "RX 7900 XTX" is no "RX 7900"."""
    label = label.upper()
    lengths = {
        index: len(name)
        for index, product in enumerate(family.products)
        for name in product.known_as
        if name in label and re.search(rf"(?<![A-Z0-9]){re.escape(name)}(?![A-Z0-9])", label)
    }
    longest = max(lengths.values(), default=0)
    return [family.products[index] for index, length in lengths.items() if length == longest]


def _by_size(family: Family, agent: Agent) -> Sequence[Product]:
    """Products of that size. A chip id that nobody knows is another product, whatever its size."""
    if agent.chip_id is not None:
        return []
    sized = [product for product in family.products if product.compute_units is not None]
    return [product for product in sized if partition_of(product, agent) is not None]


def partition_of(product: Product, agent: Agent) -> Partition | None:
    """The partition that an agent describes: by mode, XCD count or CU count, which must not disagree.

    ``None`` when they do, or when the agent says nothing.
    """
    parts = _MEMORY_SPLITS.get((agent.memory_partition or "").upper(), 1)
    modes: Sequence[tuple[str | None, int]] = product.partitions
    if not modes and product.xcd_count is not None:
        modes = ((None, product.xcd_count),)
    fitting = [Partition(mode, xcds, parts) for mode, xcds in modes if _fits(product, mode, xcds, agent)]
    recorded = (product.partitions and agent.compute_partition, agent.xcd_count, agent.compute_units)
    return fitting[0] if len(fitting) == 1 and any(recorded) else None


def _fits(product: Product, mode: str | None, xcd_count: int, agent: Agent) -> bool:
    """Whether everything that the agent states agrees with a partition of ``xcd_count`` XCDs."""
    stated_mode = agent.compute_partition.upper() if mode and agent.compute_partition else mode
    units = None if product.units_per_xcd is None else xcd_count * product.units_per_xcd
    stated_units = agent.compute_units if units is not None and agent.compute_units else units
    return (stated_mode, agent.xcd_count or xcd_count, stated_units) == (mode, xcd_count, units)


def _as_described(family: Family, product: Product, agent: Agent) -> DeviceModel:
    partition = partition_of(product, agent)
    if partition is None:
        return resized_product(family, product, _size_of(agent))
    return product_model(family, product, partition, _size_of(agent))


def _size_of(agent: Agent) -> GpuSize:
    clock_mhz = float(agent.clock_mhz) if agent.clock_mhz else None
    return GpuSize(agent.compute_units, agent.xcd_count, clock_mhz)


def _shared_facts(family: Family, models: Sequence[DeviceModel], agent: Agent) -> DeviceModel:
    """A GPU of unknown product: the driver's figures, and what all ``models`` agree on."""
    bare = sized_model(family, family.name, f"a {family.name} GPU", _size_of(agent))
    if not models:
        return with_reason(family, bare, "the recording names no known product, and none has that size")
    names = " or ".join(model.product for model in models)
    first = models[0]
    common = attrs.evolve(
        bare,
        product=names,
        compute_ceilings=tuple(c for c in first.compute_ceilings if _in_all(c, models, "compute_ceilings")),
        memory_ceilings=tuple(c for c in first.memory_ceilings if _in_all(c, models, "memory_ceilings")),
        **{name: _common(models, name) for name in (*NULLABLE, "partition")},
    )
    why = "chip id not recorded" if agent.chip_id is None else "the chip id leaves several products"
    return with_reason(family, common, f"{why}: it is {names}, which differ in this")


def _common(models: Sequence[DeviceModel], name: str) -> Any:
    values = {getattr(model, name) for model in models}
    return values.pop() if len(values) == 1 else None


def _in_all(ceiling: object, models: Sequence[DeviceModel], name: str) -> bool:
    return all(ceiling in getattr(model, name) for model in models)


# The GPUs of this machine as the driver lists them, and whether an installed plugin knows each.

_TOPOLOGY = Path("/sys/class/kfd/kfd/topology/nodes")
_NEEDED_FOR = "ceilings, counter passes and the roofline"


class DevicePluginCheck(DoctorCheck):
    """An installed plugin knows every GPU of this machine.

    ``known`` gives the architectures that installed plugins know, when it is asked.
    """

    name = "device-plugin"
    summary = "a plugin knows the GPU of this machine"

    def __init__(self, known: Callable[[], frozenset[str]], topology: Path = _TOPOLOGY) -> None:
        self._known = known
        self._topology = topology

    def check(self) -> DoctorReport:
        here = architectures_here(self._topology)
        if not here:
            return DoctorReport(DoctorStatus.OK, "no AMD GPU in this machine", _NEEDED_FOR)
        unknown = [name for name in here if name not in self._known()]
        if not unknown:
            return DoctorReport(DoctorStatus.OK, f"installed plugins know {', '.join(here)}", _NEEDED_FOR)
        packages = {package for name in unknown if (package := missing_provider("devices", name))}
        remedy = (
            f"pip install {' '.join(sorted(packages))}"
            if packages
            else "write one: `rpl docs plugins/device`"
        )
        return DoctorReport(
            DoctorStatus.MISSING, f"no installed plugin knows {', '.join(unknown)}", _NEEDED_FOR, remedy
        )


def architectures_here(topology: Path = _TOPOLOGY) -> list[str]:
    """Architectures of the GPUs that the driver lists, each once, in the order of its nodes."""
    architectures: dict[str, None] = {}
    try:
        nodes = sorted(topology.iterdir(), key=lambda node: (len(node.name), node.name))
        for node in nodes:
            for line in (node / "properties").read_text(encoding="ascii").splitlines():
                key, _, value = line.partition(" ")
                if key == "gfx_target_version" and value.isdigit() and int(value):
                    architectures[_architecture(int(value))] = None
    except (OSError, UnicodeDecodeError):  # no driver, or no permission
        return list(architectures)
    return list(architectures)


def _architecture(version: int) -> str:
    """``gfx90a`` for 90010: decimal major, minor, stepping, the last two written in hex.

    See docs/reference/formats.md, 2.6.
    """
    return f"gfx{version // 10000}{version // 100 % 100:x}{version % 100:x}"


def known_architectures() -> frozenset[str]:
    """What the installed plugins know by device, with the plugins that the environment allows."""
    from rpl_core.plugins.discovery import PluginSelection
    from rpl_core.plugins.host import create_host

    host = create_host(PluginSelection.from_environment(), config={})
    return frozenset(model.architecture for model in host.catalog.devices())


# What to say of a recording whose device no installed plugin knows. Which package knows it stands in the data
# file of the distribution that knows all of this project's packages; without that one, nothing is said.

#: The package to install for the device of a recording that no installed plugin knows.
DEVICE_PACKAGE: Fact[str | None] = Fact("device_package", str)


class DevicePackageAnalyzer(Analyzer):
    """Fact ``DEVICE_PACKAGE``, and a diagnostic that names it."""

    name = "device-package"
    summary = "which package knows the recorded device, where none that is installed does"
    provides = frozenset({DEVICE_PACKAGE})

    def analyze(self, context: AnalysisContext) -> AnalysisOutcome:
        recorded = {agent.architecture for agent in context.recording.gpu_agents if agent.architecture}
        if context.device is not None or len(recorded) != 1:
            return AnalysisOutcome({DEVICE_PACKAGE: None})
        architecture = recorded.pop().partition(":")[0]
        package = missing_provider("devices", architecture)
        if package is None:
            return AnalysisOutcome({DEVICE_PACKAGE: None})
        missing = Diagnostic(
            "device.plugin_missing",
            f"{package} knows {architecture} and is not installed",
            Severity.WARNING,
            remedy=f"pip install {package}",
        )
        return AnalysisOutcome({DEVICE_PACKAGE: package}, (missing,))
