"""What the application is supposed to have done on the GPU: the demo, or a file given by the test.

A JSON scenario holds `application` (kernels and steps, or "demo"), `children` (further processes that use
the GPU) and `misbehaviour`. A Python scenario defines `APPLICATION` and optionally `CHILDREN` and
`MISBEHAVIOUR`; it is the test author's own code and is executed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from rpl_core.values import frozen
from rpl_testkit.synthetic_recording import application_model as model

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["Scenario", "ScenarioError", "kernel_model", "load_scenario"]


class ScenarioError(Exception):
    """The scenario file is missing or not understood."""


def _demo() -> model.Application:
    from rpl_testkit.synthetic_recording.demo_application import DEMO_APPLICATION

    return DEMO_APPLICATION


@frozen
class Scenario:
    """An application, the number of child processes that use the GPU too, and failures.

    `duration_ns` gives the time of each dispatch in turn; without it they vary as in `timeline`.
    """

    application: model.Application = attrs.field(factory=_demo)
    children: int = 0
    misbehaviour: str = ""
    duration_ns: Callable[[model.KernelModel], int] | None = None


def load_scenario(environment: Mapping[str, str]) -> Scenario:
    """Return the scenario that `RPL_STANDIN_SCENARIO` names, or the demo."""
    name = environment.get("RPL_STANDIN_SCENARIO")
    if not name:
        return Scenario()
    path = Path(name)
    try:
        if path.suffix == ".py":
            return _from_python(path)
        return _from_json(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ScenarioError(f"scenario {path}: {type(error).__name__}: {error}") from error


def _from_python(path: Path) -> Scenario:
    import runpy

    names = runpy.run_path(str(path))
    return Scenario(names["APPLICATION"], names.get("CHILDREN", 0), names.get("MISBEHAVIOUR", ""))


def _from_json(data: dict[str, Any]) -> Scenario:
    application = data.get("application", "demo")
    return Scenario(
        _demo() if application == "demo" else _application(application),
        int(data.get("children", 0)),
        str(data.get("misbehaviour", "")),
    )


def _application(data: dict[str, Any]) -> model.Application:
    fields = {**data}
    kernels = tuple(kernel_model(kernel) for kernel in fields.pop("kernels"))
    steps = tuple(_step(step) for step in fields.pop("steps"))
    return model.Application(kernels=kernels, steps=steps, **fields)


def kernel_model(data: Mapping[str, Any]) -> model.KernelModel:
    """A kernel from its JSON form. TypeError and KeyError for what is missing or unknown."""
    fields = {"symbol": data["name"], **data}
    work = model.WorkModel(**fields.pop("work", {}))
    for axis in ("grid", "workgroup"):
        x, y, z = fields[axis]
        fields[axis] = (x, y, z)
    return model.KernelModel(work=work, **fields)


def _step(data: dict[str, Any]) -> model.Step:
    """Read one step; its first key says what it is and holds the main value."""
    fields = {**data}
    key = next(iter(fields))
    main = fields.pop(key)
    if key == "repeat":
        return model.Repeat(main, tuple(_step(step) for step in fields["steps"]))
    if key == "graph":
        return model.GraphLaunch(tuple(main), **fields)
    if key == "wait":
        return model.Wait(event=main, **fields)
    if key == "sync_device":
        return model.SyncDevice()
    kinds: dict[str, Any] = {
        "launch": model.Launch,
        "copy": model.Copy,
        "allocate": model.Allocate,
        "record": model.Record,
        "sync_stream": model.SyncStream,
        "sync_event": model.SyncEvent,
        "host_work_ns": model.HostWork,
    }
    step: model.Step = kinds[key](main, **fields)
    return step
