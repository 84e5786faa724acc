"""The -i file of rocprofv3: text `pmc:` lines, or YAML/JSON `jobs`, each becoming one pass."""

from __future__ import annotations

import importlib
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["InputFileError", "InputJob", "merge_options", "read_input_file"]

#: Keys and values of one job, and the prefix of its output folder (`pmc_` or `pass_`).
InputJob = tuple[dict[str, Any], str]


class InputFileError(Exception):
    """The file can't be used; the text is what the profiler prints after `Fatal error:`."""


def read_input_file(path: Path) -> list[InputJob]:
    """Return the jobs of `path` in order."""
    if path.suffix == ".txt":
        return [({"pmc": counters}, "pmc_") for counters in _text_jobs(path)]
    if path.suffix not in (".json", ".yaml", ".yml"):
        raise InputFileError(
            f"Input file '{path}' does not have a recognized extension (.txt, .json, .yaml, .yml)"
        )
    try:
        text = path.read_text(encoding="utf-8")
        jobs = (json.loads(text) if path.suffix == ".json" else _load_yaml(text))["jobs"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputFileError(str(error)) from error
    return [(dict(job), "pass_") for job in jobs]


def _load_yaml(text: str) -> Any:
    try:
        yaml = importlib.import_module("yaml")
    except ImportError as error:
        raise InputFileError(
            f"{error}\n\nYAML package is not installed. Run 'pip install pyyaml' or use JSON or text format"
        ) from error
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise InputFileError(str(error)) from error


def _text_jobs(path: Path) -> list[list[str]]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise InputFileError(str(error)) from error
    counters = [line.partition("#")[0].replace("pmc:", "").split() for line in lines if "pmc:" in line]
    return [names for names in counters if names]


def merge_options(command_line: dict[str, Any], job: dict[str, Any]) -> dict[str, Any]:
    """Join command line and job. RuntimeError when both give a key different values, as in reality."""
    merged = dict(job)
    for key, value in command_line.items():
        if key in job and job[key] != value:
            raise RuntimeError(f"conflicting value for {key} : {value} vs {job[key]}")
        merged[key] = value
    if isinstance(merged.get("kernel_iteration_range"), str):
        merged["kernel_iteration_range"] = [merged["kernel_iteration_range"]]
    return merged
