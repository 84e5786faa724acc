"""Find the device model: from the recorded agents, checked against what the user asked for; its ceilings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import attrs

from rpl_core.errors import DeviceMismatchError, MissingError
from rpl_core.model.device import ComputeCeiling, DeviceModel, MemoryCeiling
from rpl_core.model.diagnostic import Diagnostic
from rpl_core.model.trace import Agent
from rpl_core.plugins.entry_points import missing_provider, provider_of
from rpl_core.text import did_you_mean
from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_core.model.recording import Recording

#: Recognises agents; the hook ``rpl_detect_device`` behind the host's boundary.
Detector = Callable[[tuple[Agent, ...]], DeviceModel | None]
Ceiling = TypeVar("Ceiling", ComputeCeiling, MemoryCeiling)
_OPTIONAL = ("compute_units", "xcd_count", "clock_mhz", "l2_bytes", "llc_bytes", "l2_channels", "partition")


@frozen
class ResolvedDevice:
    """The model (``None`` when no plugin knows the device), where it came from, and what to tell."""

    model: DeviceModel | None
    source: str
    diagnostics: tuple[Diagnostic, ...] = ()


def named_device(name: str, models: Sequence[DeviceModel]) -> DeviceModel:
    """The product or family ``name``. Raises ``MissingError`` naming the known ones."""
    wanted = name.lower()
    for model in models:
        if model.name.lower() == wanted:
            return model
    family = [model for model in models if model.architecture.lower() == wanted]
    if family:
        return family[0] if len(family) == 1 else common_model(family[0].architecture, family)
    known = dict.fromkeys((*sorted({m.architecture for m in models}), *sorted(m.name for m in models)))
    if package := provider_of("devices", wanted):
        told = f"device {name!r} comes from {package}, which is not installed or not loaded"
        raise MissingError(told, next_step=f"pip install {package}")
    raise MissingError(
        f"device {name!r} is unknown; known: {', '.join(known)}{did_you_mean(name, known)}"
        if known
        else f"device {name!r} is unknown: no device plugin is installed",
        next_step="write a device plugin: `rpl docs plugins/device`",
    )


def resolve_device(
    name: str | None, agents: tuple[Agent, ...], models: Sequence[DeviceModel], detect: Detector
) -> ResolvedDevice:
    """The device of a recording.

    ``agents`` are those that executed work. A family name is refined to the recorded product; a
    recording of another architecture than asked for raises ``DeviceMismatchError``.
    """
    asked = named_device(name, models) if name is not None else None
    if asked is not None:
        _refuse_other_architecture(asked, agents)
    detected = detect(agents) if agents else None
    doubts = _impossible(detected)
    if asked is None:
        resolved = _detected(detected, agents)
        return attrs.evolve(resolved, diagnostics=(*resolved.diagnostics, *doubts))
    if detected is None:
        return ResolvedDevice(asked, f"--device {name}", _unconfirmed(asked, agents))
    if asked.name == asked.architecture or asked.name == detected.name:
        return ResolvedDevice(detected, "recorded agents", doubts)
    return ResolvedDevice(asked, f"--device {name}", (_other_product(asked, detected), *doubts))


def _impossible(detected: DeviceModel | None) -> tuple[Diagnostic, ...]:
    """A warning where the recording states a size that no such device has."""
    if detected is None or not detected.impossible_facts:
        return ()
    told = Diagnostic(
        "device.impossible_facts",
        f"the recording states what can't be: {'; '.join(detected.impossible_facts)}; this is not used",
        cause="the profiler asked a driver that did not know the device",
        remedy="name the product with --device: ceilings depend on its size",
    )
    return (told,)


def refuse_other_family(asked: DeviceModel, recording: Recording) -> None:
    """Raises ``DeviceMismatchError`` for a recording whose architecture's name begins in another way."""
    known = {trace.architecture_prefix for trace in recording.traces}
    others = sorted(prefix for prefix in known if not asked.architecture.startswith(prefix))
    if others:
        raise DeviceMismatchError(
            f"the recording is of a {others[0]} GPU, but --device asks for {asked.architecture}",
            next_step="leave --device out, or name the device that it was recorded on",
        )


def _refuse_other_architecture(asked: DeviceModel, agents: tuple[Agent, ...]) -> None:
    recorded = sorted({agent.architecture for agent in agents if agent.architecture})
    others = [architecture for architecture in recorded if architecture != asked.architecture]
    if others:
        raise DeviceMismatchError(
            f"the recording was made on {', '.join(others)}, but --device asks for {asked.architecture}",
            next_step=f"use --device {others[0]}, or leave --device out",
        )


def _detected(detected: DeviceModel | None, agents: tuple[Agent, ...]) -> ResolvedDevice:
    if detected is not None:
        return ResolvedDevice(detected, "recorded agents")
    names = ", ".join(sorted({name for agent in agents if (name := agent.architecture or agent.product)}))
    fact, remedy = "the device is not recorded", "name it with --device"
    if names:
        fact = f"no installed plugin knows the device ({names})"
        wanted = {name.lower() for agent in agents for name in (agent.architecture, agent.product) if name}
        packages = sorted({package for name in wanted if (package := missing_provider("devices", name))})
        remedy = "enable or write a device plugin: `rpl docs plugins/device`"
        if packages:
            remedy = f"pip install {' '.join(packages)}"
    told = Diagnostic("device.unknown", f"{fact}; ceilings are unknown", remedy=remedy)
    return ResolvedDevice(None, "unknown", (told,))


def _unconfirmed(asked: DeviceModel, agents: tuple[Agent, ...]) -> tuple[Diagnostic, ...]:
    if any(agent.architecture for agent in agents):
        return ()
    assumed = f"the recording does not say which device it was made on; {asked.name} is taken from --device"
    assumption = (Diagnostic("device.not_recorded", assumed),)
    if not asked.unknown_facts:
        return assumption
    unknown = f"unknown for {asked.product}: {'; '.join(asked.unknown_facts)}"
    return (*assumption, Diagnostic("device.fact_unknown", unknown, remedy="name the product with --device"))


def _other_product(asked: DeviceModel, detected: DeviceModel) -> Diagnostic:
    return Diagnostic(
        "device.other_product",
        f"the recording looks like {detected.name}, but --device asks for {asked.name}, which is used",
        remedy=f"leave --device out, or use --device {detected.name}",
    )


def common_model(architecture: str, models: Sequence[DeviceModel]) -> DeviceModel:
    """A model that holds only facts on which all ``models`` agree; the others are ``None``.

    It is the device of a recording that names no product.
    Ceilings are kept where every product has the same figure.
    """
    first = models[0]
    differing = [name for name in _OPTIONAL if len({getattr(m, name) for m in models}) > 1]
    memory = _common([m.memory_ceilings for m in models])
    levels = {c.level for m in models for c in m.memory_ceilings} - {c.level for c in memory}
    differing += [f"{level}_ceiling" for level in sorted(levels)]
    names = ", ".join(m.name for m in models)
    unknown = (f"{', '.join(differing)} (differs between products)",) if differing else ()
    no_longer_known: dict[str, Any] = dict.fromkeys(name for name in differing if name in _OPTIONAL)
    return attrs.evolve(
        first,
        name=architecture,
        product=f"one of {names}",
        chip_ids=tuple(sorted({chip for m in models for chip in m.chip_ids})),
        compute_ceilings=_common([m.compute_ceilings for m in models]),
        memory_ceilings=memory,
        unknown_facts=unknown,
        **no_longer_known,
    )


def _common(ceilings: Sequence[tuple[Ceiling, ...]]) -> tuple[Ceiling, ...]:
    shared = set(ceilings[0]).intersection(*ceilings[1:])
    return tuple(c for c in ceilings[0] if c in shared)


def with_ceilings(device: DeviceModel, added: Sequence[ComputeCeiling | MemoryCeiling]) -> DeviceModel:
    """``device`` with ceilings that plugins add; one for the same thing and origin takes its place."""
    if not added:
        return device
    compute = (*device.compute_ceilings, *(c for c in added if isinstance(c, ComputeCeiling)))
    memory = (*device.memory_ceilings, *(c for c in added if isinstance(c, MemoryCeiling)))
    return attrs.evolve(
        device,
        compute_ceilings=tuple({(c.data_type, c.pipe, c.origin): c for c in compute}.values()),
        memory_ceilings=tuple({(c.level, c.origin): c for c in memory}.values()),
    )
