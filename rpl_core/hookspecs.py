"""Every hook of rpl, in the order in which a profile meets them.

Rules for all hooks:

* Arguments are passed by keyword; an implementation may take fewer than the spec has.
* Collecting hooks return a tuple (possibly empty) of descriptions or objects and do no work. The core
  calls those objects later, inside an error boundary per plugin: an exception costs only that plugin's
  contribution and becomes a diagnostic, unless the user asked for that plugin by name.
* Plugins are called in the order of their names, so equal installations give equal results.
* Returning ``None`` means "nothing to say" everywhere.
* ``config`` is the plugin-independent view of the configuration: keys such as ``"plugins.<name>.<key>"`` with
  their resolved values. Read-only; take settings from it instead of keeping them in the module.

Changes within one ``RPL_API`` number are additive. A snapshot of all signatures is tested.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pluggy

if TYPE_CHECKING:
    from rpl_core.interfaces.analyzer import Analyzer
    from rpl_core.interfaces.collector import Collector, RunInfo, RunOutcome
    from rpl_core.interfaces.doctor import DoctorCheck
    from rpl_core.interfaces.document import DocumentContract, DocumentSection
    from rpl_core.interfaces.executor import Executor
    from rpl_core.interfaces.options import CommandOption
    from rpl_core.interfaces.reader import Reader
    from rpl_core.interfaces.section import Renderer, ReportSection
    from rpl_core.model.device import ComputeCeiling, DeviceModel, MemoryCeiling
    from rpl_core.model.trace import Agent

#: Name under which hooks are marked; plugins never spell it, they import ``hookimpl``.
PROJECT = "rpl"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec
def rpl_device_models(config: Mapping[str, Any]) -> tuple[DeviceModel, ...] | None:
    """Describe the GPU products this plugin knows.

    Called when a command needs a device, by name or to recognise one.

    :return: one model per product. Names must be unique over all plugins; a second model of the same name
        is refused and reported.

    Order: plugin name, then as returned. Isolation: per plugin.
    """


@hookspec
def rpl_detect_device(agents: tuple[Agent, ...], config: Mapping[str, Any]) -> DeviceModel | None:
    """Recognise the product behind recorded agents, scaled to their partition mode.

    Called when a recording names agents. Each plugin is asked; the answers must agree.

    :param agents: the GPUs that executed work, as the driver described them. Fields may be ``None``.
    :return: the model for these agents (facts that the agents do not settle are ``None``), or ``None`` if
        this plugin does not know them. Never a guess.

    Order: plugin name; the first answer wins, a second different answer is a diagnostic.
    Isolation: per plugin.
    """


@hookspec
def rpl_ceilings(
    device: DeviceModel, config: Mapping[str, Any]
) -> tuple[ComputeCeiling | MemoryCeiling, ...] | None:
    """Add ceilings to a device, such as ones that were measured on it.

    Called once per analysis, when the device is known.

    :param device: the device with the ceilings of its own plugin.
    :return: further ceilings; one of the same type or level, pipe and origin replaces the device's.

    Order: plugin name, then as returned; the last one wins. Isolation: per plugin.
    """


@hookspec
def rpl_options(config: Mapping[str, Any]) -> tuple[CommandOption[Any], ...] | None:
    """Add options to commands.

    Called when a command that takes options of plugins is parsed, or shows its help.

    :return: options with names that no other plugin uses. Their values are found under the option itself:
        ``context.options[OPTION]``.

    Order: plugin name, then as returned. Isolation: per plugin.
    """


@hookspec
def rpl_collectors(config: Mapping[str, Any]) -> tuple[Collector, ...] | None:
    """Offer ways to record an application.

    Called by ``rpl profile`` and ``rpl doctor``.

    :return: collectors; ``--collector NAME`` picks one, otherwise the first usable one in plugin order.

    Order: plugin name, then as returned. Isolation: per plugin; fatal only for the chosen collector.
    """


@hookspec
def rpl_readers(config: Mapping[str, Any]) -> tuple[Reader, ...] | None:
    """Offer readers of recorded files.

    Called by every command that reads a recording.

    :return: readers. A file goes to the reader of the highest ``priority`` that recognises it, then by
        plugin name and name.

    Order: as above. Isolation: per plugin; fatal only for the reader whose file the user named.
    """


@hookspec
def rpl_analyzers(config: Mapping[str, Any]) -> tuple[Analyzer, ...] | None:
    """Offer analysis steps.

    Called before an analysis; the core sorts the steps by ``requires``, ``wants`` and ``provides``.

    :return: analyzers. Two analyzers may not provide the same fact; the later one in plugin order is
        refused and reported. A cycle is reported with its members, and they do not run.

    Order: topological, then plugin name and analyzer name. Isolation: per analyzer; steps that need a
    failed one's facts are skipped and named.
    """


@hookspec
def rpl_documents(config: Mapping[str, Any]) -> tuple[DocumentContract | DocumentSection, ...] | None:
    """Offer documents, contracts of other JSON files, or sections of documents of other plugins.

    Called once per analysis, after the analyzers, and by ``rpl schema``.

    :return: documents with unique names; sections with unique names that say where they go.

    Order: documents before those that come ``after`` them, then plugin name; sections last. Isolation: per
    document and section; a draft that breaks its contract costs only itself.
    """


@hookspec
def rpl_report_sections(config: Mapping[str, Any]) -> tuple[ReportSection, ...] | None:
    """Add sections to the text report, the HTML report and ``rpl explain``.

    Called when a report is made.

    :return: sections with unique names.

    Order: plugin name, then as returned. Isolation: per section.
    """


@hookspec
def rpl_renderers(config: Mapping[str, Any]) -> tuple[Renderer, ...] | None:
    """Offer output formats for the documents of a run.

    Called by ``rpl report``.

    :return: renderers; ``--format NAME`` picks one by its name.

    Order: plugin name, then as returned. Isolation: per renderer; fatal only for the chosen one.
    """


@hookspec
def rpl_executors(config: Mapping[str, Any]) -> tuple[Executor, ...] | None:
    """Offer places where tasks run: ranks of a job are read there, configurations measured.

    Called by ``rpl ranks`` and ``rpl autotune``; ``--executor NAME`` picks one.

    :return: executors with unique names.

    Order: plugin name, then as returned. Isolation: per executor; fatal only for the chosen one.
    """


@hookspec
def rpl_doctor_checks(config: Mapping[str, Any]) -> tuple[DoctorCheck, ...] | None:
    """Offer things that ``rpl doctor`` should look at.

    Called by ``rpl doctor``.

    :return: checks; each must end within seconds and change nothing.

    Order: plugin name, then as returned. Isolation: per check; a check that raises shows as broken.
    """


@hookspec
def rpl_run_started(run: RunInfo, config: Mapping[str, Any]) -> None:
    """Hear that a profile run begins, before its first pass.

    :param run: directory, command, device and collector of the run.
    :return: nothing.

    Order: plugin name. Isolation: per plugin.
    """


@hookspec
def rpl_run_finished(run: RunInfo, outcome: RunOutcome, config: Mapping[str, Any]) -> None:
    """Hear how a profile run ended; also called after an interrupt or a failed pass.

    :param run: as given to ``rpl_run_started``.
    :param outcome: complete, or incomplete with the reason.
    :return: nothing.

    Order: plugin name. Isolation: per plugin.
    """
