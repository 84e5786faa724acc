"""Which kernel of the source a request is about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_codeobject.kernel_names import is_instance
from rpl_llm_unroll.reply.model import Target
from rpl_llm_unroll.syntax.source_file import read_source_file

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from rpl_llm_unroll.syntax.kernels import KernelNode
    from rpl_optimize.interfaces.proposer import ProposalRequest


def find_target(request: ProposalRequest) -> Target | str:
    """The kernel that is named, or the heaviest of the file; otherwise why there is none, in one sentence."""
    file = read_source_file(request.source.text)
    if not file.kernels:
        return "the source defines no kernel"
    name = request.source.kernel or heaviest_kernel(request.documents, file.kernels)
    kernels = [kernel for kernel in file.kernels if kernel.name == name]
    if not kernels:
        known = ", ".join(sorted({kernel.name for kernel in file.kernels}))
        return f"the source defines no kernel {name!r}; it defines: {known}"
    if len(kernels) > 1:
        return f"the source defines {len(kernels)} kernels called {name!r}, and which one ran can't be told"
    target = Target(file, kernels[0])
    try:
        request.source.text[kernels[0].outer.start_byte : kernels[0].outer.end_byte].decode("utf-8")
    except UnicodeDecodeError:
        return f"the kernel {name!r} holds bytes that are not UTF-8, which no reply could keep"
    return target


def kernels_that_ran(documents: Mapping[str, Any], source: bytes) -> bool | None:
    """Whether the run launched any kernel of the source; ``None`` where the run names no kernel."""
    profile = documents.get("profile")
    ran = [str(kernel.get("name")) for kernel in (profile or {}).get("kernels", ())]
    kernels = read_source_file(source).kernels
    if not ran or not kernels:
        return None
    return any(is_instance(name, kernel.name) for name in ran for kernel in kernels)


def heaviest_kernel(documents: Mapping[str, Any], kernels: tuple[KernelNode, ...]) -> str:
    """By its share of the critical path; the first of the file where nothing is known."""
    dag = documents.get("dag")
    symbols = dag.get("symbols") if isinstance(dag, dict) else None
    weights: dict[str, float] = {}
    for symbol in symbols or ():
        for kernel in kernels:
            if symbol.get("kind") == "kernel" and is_instance(str(symbol.get("name")), kernel.name):
                weight = float(symbol.get("criticality_weight") or 0.0)
                weights[kernel.name] = max(weights.get(kernel.name, 0.0), weight)
    return max(kernels, key=lambda kernel: weights.get(kernel.name, 0.0)).name
