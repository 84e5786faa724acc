"""Nothing above this plugin knows the name of its GPUs: renamed, the same facts give the same labels."""

from __future__ import annotations

import tarfile
from pathlib import Path
from types import ModuleType

import attrs
import pytest

import rpl_emu
from rpl_core import hookimpl
from rpl_core.ingest import load_recording
from rpl_core.pipeline import AnalysisRequest, analyse
from rpl_gfx942.plugin import rpl_detect_device, rpl_device_models

NAME = "gfx1250"
READERS_AND_ANALYSES = ("analysis", "codeobject", "rocprofv3")


def _renamed(model):
    facts = attrs.evolve(model.architecture_facts, name=NAME)
    return attrs.evolve(model, name=f"s{model.name}", architecture=NAME, architecture_facts=facts)


def _under_its_old_name(agent):
    return attrs.evolve(agent, architecture="gfx942")


@pytest.fixture
def stranger():
    """A plugin that describes the same GPUs under the name of another architecture."""
    module = ModuleType("stranger")
    module.RPL_API = 2

    @hookimpl
    def stranger_models():
        return tuple(_renamed(model) for model in rpl_device_models())

    @hookimpl
    def stranger_detects(agents):
        if {agent.architecture for agent in agents} != {NAME}:
            return None
        found = rpl_detect_device(tuple(_under_its_old_name(agent) for agent in agents))
        return None if found is None else _renamed(found)

    module.rpl_device_models, module.rpl_detect_device = stranger_models, stranger_detects
    return module


@pytest.fixture(scope="session")
def demo_folder(tmp_path_factory):
    """One timing run and the counter passes of the synthetic demo application: seven kernels."""
    folder = tmp_path_factory.mktemp("demo")
    with tarfile.open(Path(rpl_emu.__file__).parent / "demo" / "recording.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder


def _renamed_agents(recording):
    traces = (
        attrs.evolve(
            trace,
            agents=tuple(
                attrs.evolve(agent, architecture=NAME) if agent.architecture == "gfx942" else agent
                for agent in trace.agents
            ),
        )
        for trace in recording.traces
    )
    return attrs.evolve(recording, traces=tuple(traces))


def _labels(recording, host):
    documents = analyse(recording, AnalysisRequest(), host)
    kernels = documents.model("analysis").kernels
    return {kernel.kernel: (kernel.bottleneck, kernel.headroom_fraction) for kernel in kernels}


def test_a_stranger_with_the_same_facts_gives_the_same_labels(demo_folder, rpl_host, stranger):
    host = rpl_host(*READERS_AND_ANALYSES, "gfx942")
    files = [folder for folder in sorted(demo_folder.rglob("*")) if folder.suffix == ".db"]
    recording = load_recording(files, host.catalog.readers().contributions)
    ours = _labels(recording, host)
    theirs = _labels(_renamed_agents(recording), rpl_host(*READERS_AND_ANALYSES, stranger))
    assert theirs == ours
    # A comparison of unknowns would prove nothing: occupancy decides some of these labels.
    assert len(ours) == 7
    assert "unclassified" not in {label for label, _ in ours.values()}
