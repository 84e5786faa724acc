"""The options of ``rpl autotune`` on code objects: which file holds the code of which configuration."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from rpl_core.errors import UsageError

if TYPE_CHECKING:
    from rpl_autotune.cli.autotune_call import AutotuneCall, AutotuneSettings
    from rpl_autotune.evaluation.templates import Templates
    from rpl_autotune.interfaces.space import SearchSpace
    from rpl_autotune.space.expressions import Expression

__all__ = ["space_with_code"]


def space_with_code(call: AutotuneCall, space: SearchSpace, scratch: Path) -> SearchSpace:
    """``space`` with the numbers of its code objects as features, where options name any."""
    settings = call.settings
    named = settings.code_object
    if named is None and not settings.build_all:
        _refuse_details(settings)
        return space
    from rpl_autotune.evaluation.code_features import CodeRequest, code_features
    from rpl_core.pipeline import architectures

    files = _built(call, space, scratch) if named is None else _named(named, space)
    sizes = (_expression(text, space) for text in (settings.workgroup_size, settings.dynamic_lds))
    features = code_features(
        space, CodeRequest(files, settings.kernel, *sizes), architectures(None, call.session.host)
    )
    for problem in features.problems:
        call.session.output.note(problem)
    if features.unknown:
        call.session.output.note(
            f"no code object at hand for {features.unknown} of {len(space)} configurations"
        )
    return attrs.evolve(space, given_features={**space.given_features, **features.columns})


def _refuse_details(settings: AutotuneSettings) -> None:
    details = {
        "--kernel": settings.kernel,
        "--workgroup-size": settings.workgroup_size,
        "--dynamic-lds": settings.dynamic_lds,
    }
    for option, given in details.items():
        if given is not None:
            raise UsageError(
                f"{option} is about code objects, and none is named",
                next_step="add --code-object FILE, or --build-all to --build",
            )


def _expression(text: str | None, space: SearchSpace) -> Expression | None:
    from rpl_autotune.space.expressions import parse_expression

    return None if text is None else parse_expression(text, frozenset(space.parameters))


def _named(template: str, space: SearchSpace) -> list[Path | None]:
    """The files that ``--code-object`` names; those that are not there count as unknown."""
    from rpl_autotune.evaluation.templates import filled_path

    paths = [filled_path(template, space, index) for index in range(len(space))]
    present = {path: path.is_file() for path in set(paths)}
    if not any(present.values()):
        raise UsageError(
            f"--code-object: there is no {paths[space.default]}",
            next_step="name a file with the code; {NAME} stands for the value of a parameter",
        )
    return [path if present[path] else None for path in paths]


def _built(call: AutotuneCall, space: SearchSpace, scratch: Path) -> list[Path | None]:
    """The programs of all configurations, each distinct one built once; the search uses the same builds."""
    from rpl_autotune.evaluation.build import build_variant

    templates: Templates = call.templates(space)
    if not templates.build:
        raise UsageError("--build-all has nothing to build", next_step="add --build, or leave it out")
    programs: dict[str | None, Path | None] = {}
    variants = [templates.variant(space, index) for index in range(len(space))]
    count = len({variant.build_key for variant in variants})
    with call.session.output.progress("build", total=count) as step:
        for variant in variants:
            if variant.build_key not in programs:
                step(f"{len(programs) + 1}/{count}")
                built = build_variant(variant, scratch, Path.cwd(), call.settings.build_time_limit)
                programs[variant.build_key] = built.program
    return [programs[variant.build_key] for variant in variants]
