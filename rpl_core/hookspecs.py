"""Every hook of rpl, in the order in which a profile meets them.

Rules for all hooks:

* Arguments are passed by keyword; an implementation may take fewer than the spec has.
* Collecting hooks return a tuple (possibly empty) of descriptions or objects and do no work. The core
  calls those objects later, inside an error boundary per plugin: an exception costs only that plugin's
  contribution and becomes a diagnostic, unless the user asked for that plugin by name.
* Plugins are called in the order of their names, so equal installations give equal results.
* Returning ``None`` means "nothing to say" everywhere.

Changes within one ``RPL_API`` number are additive. A snapshot of all signatures is tested.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rpl_core.markers import hookspec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rpl_core.interfaces.analyzer import Analyzer
    from rpl_core.interfaces.collector import Collector
    from rpl_core.interfaces.doctor import DoctorCheck
    from rpl_core.interfaces.equivalence import EquivalenceCheck
    from rpl_core.interfaces.proposer import Proposer
    from rpl_core.interfaces.reader import Reader
    from rpl_core.interfaces.renderer import Renderer
    from rpl_core.interfaces.replayer import Replayer
    from rpl_core.interfaces.rule import Rule
    from rpl_core.interfaces.run import RunInfo, RunOutcome
    from rpl_core.interfaces.transformation import Transformation
    from rpl_core.model.device import DeviceModel
    from rpl_core.model.trace import Agent


@hookspec
def rpl_configure(config: Mapping[str, Any]) -> None:
    """Take settings before anything else happens.

    Called once per host, after all plugins are registered.

    :param config: the plugin-independent view of the configuration: keys such as ``"plugins.<name>.<key>"``
        with their resolved values. Read-only.
    :return: nothing.

    Order: plugin name. Isolation: a plugin that raises here stays registered; the failure is a diagnostic.
    """


@hookspec
def rpl_device_models() -> tuple[DeviceModel, ...] | None:
    """Describe the GPU products this plugin knows.

    Called when a command needs a device, by name or to recognise one.

    :return: one model per product. Names must be unique over all plugins; a second model of the same name
        is refused and reported.

    Order: plugin name, then as returned. Isolation: per plugin.
    """


@hookspec
def rpl_detect_device(agents: tuple[Agent, ...]) -> DeviceModel | None:
    """Recognise the product behind recorded agents, scaled to their partition mode.

    Called when a recording names agents. Each plugin is asked; the answers must agree.

    :param agents: the GPUs that executed work, as the driver described them. Fields may be ``None``.
    :return: the model for these agents (facts that the agents do not settle are ``None``), or ``None`` if
        this plugin does not know them. Never a guess.

    Order: plugin name; the first answer wins, a second different answer is a diagnostic.
    Isolation: per plugin.
    """


@hookspec
def rpl_collectors() -> tuple[Collector, ...] | None:
    """Offer ways to record an application.

    Called by ``rpl profile`` and ``rpl doctor``.

    :return: collectors; ``--collector NAME`` picks one, otherwise the first usable one in plugin order.

    Order: plugin name, then as returned. Isolation: per plugin; fatal only for the chosen collector.
    """


@hookspec
def rpl_readers() -> tuple[Reader, ...] | None:
    """Offer readers of recorded files.

    Called by every command that reads a recording.

    :return: readers. A file goes to the reader of the highest ``priority`` that recognises it, then by
        plugin name.

    Order: as above. Isolation: per plugin; fatal only for the reader whose file the user named.
    """


@hookspec
def rpl_analyzers() -> tuple[Analyzer, ...] | None:
    """Offer analysis steps.

    Called before an analysis; the core sorts the steps by ``requires`` and ``provides``.

    :return: analyzers. Two analyzers may not provide the same fact; the later one in plugin order is
        refused and reported. A cycle is reported with its members, and they do not run.

    Order: topological, then plugin name and analyzer name. Isolation: per analyzer; steps that need a
    failed one's facts are skipped and named.
    """


@hookspec
def rpl_classifier_rules(device: DeviceModel | None) -> tuple[Rule, ...] | None:
    """Offer rules for the bottleneck label.

    Called once per analysis.

    :param device: the device that the recording was made on, or ``None`` when it is unknown.
    :return: rules; all are evaluated, so that near-misses can be shown.

    Order: priority (highest first), plugin name, rule id. Isolation: per plugin.
    """


@hookspec
def rpl_transformations() -> tuple[Transformation, ...] | None:
    """Offer source-to-source changes of kernels.

    Called by ``rpl transform`` and by the optimizer.

    :return: transformations with unique names.

    Order: plugin name, then as returned. Isolation: per transformation.
    """


@hookspec
def rpl_proposers() -> tuple[Proposer, ...] | None:
    """Offer ways to choose the optimizer's next candidate.

    Called by the optimizer; ``--proposer NAME`` picks one.

    :return: proposers with unique names.

    Order: plugin name, then as returned. Isolation: per proposer; fatal only for the chosen one.
    """


@hookspec
def rpl_equivalence_checks() -> tuple[EquivalenceCheck, ...] | None:
    """Offer checks that a changed program computes the same.

    Called by the optimizer before it measures a candidate.

    :return: checks; they are asked in order, and the first ``different`` rejects the candidate. One that
        says ``equal`` is shown a kernel that does nothing and one that stores wrong values.

    Order: plugin name, then as returned. Isolation: per check; a check that fails to run counts as
    ``not_run``, never as ``equal``.
    """


@hookspec
def rpl_replayers() -> tuple[Replayer, ...] | None:
    """Offer ways to replay a captured dispatch.

    Called by the replay commands.

    :return: replayers with unique names.

    Order: plugin name, then as returned. Isolation: per replayer; fatal only for the chosen one.
    """


@hookspec
def rpl_renderers() -> tuple[Renderer, ...] | None:
    """Offer output formats for the documents of a run.

    Called by ``rpl report``.

    :return: renderers; ``--format NAME`` picks one by its name.

    Order: plugin name, then as returned. Isolation: per renderer; fatal only for the chosen one.
    """


@hookspec
def rpl_doctor_checks() -> tuple[DoctorCheck, ...] | None:
    """Offer things that ``rpl doctor`` should look at.

    Called by ``rpl doctor``.

    :return: checks; each must end within seconds and change nothing.

    Order: plugin name, then as returned. Isolation: per check; a check that raises shows as broken.
    """


@hookspec
def rpl_run_started(run: RunInfo) -> None:
    """Hear that a profile run begins, before its first pass.

    :param run: directory, command, device and collector of the run.
    :return: nothing.

    Order: plugin name. Isolation: per plugin.
    """


@hookspec
def rpl_run_finished(run: RunInfo, outcome: RunOutcome) -> None:
    """Hear how a profile run ended; also called after an interrupt or a failed pass.

    :param run: as given to ``rpl_run_started``.
    :param outcome: complete, or incomplete with the reason.
    :return: nothing.

    Order: plugin name. Isolation: per plugin.
    """
