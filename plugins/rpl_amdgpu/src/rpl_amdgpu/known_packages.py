"""Which package knows which device, installed or not; and what to say of a recording that needs one.

The names come from the data file of the distribution that knows all of this project's packages. Without it
nobody knows, and nothing is said.
"""

from __future__ import annotations

from rpl_core.interfaces.analyzer import AnalysisContext, AnalysisOutcome, Analyzer
from rpl_core.interfaces.fact import Fact
from rpl_core.model.diagnostic import Diagnostic, Severity
from rpl_core.plugins.entry_points import missing_provider

__all__ = ["DEVICE_PACKAGE", "DevicePackageAnalyzer"]

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
        found = Diagnostic(
            "device.plugin_missing",
            f"{package} knows {architecture} and is not installed",
            Severity.WARNING,
            remedy=f"pip install {package}",
        )
        return AnalysisOutcome({DEVICE_PACKAGE: package}, (found,))
