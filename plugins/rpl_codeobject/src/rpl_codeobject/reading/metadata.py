"""Turn the msgpack note ``NT_AMDGPU_METADATA`` into kernels; total: what is wrong is said by key.

Keys and which of them are required: LLVM ``AMDGPUUsage``, "Code Object V3 Metadata" and its successors.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import msgpack

from rpl_codeobject.values import Kernel, KernelArgument
from rpl_core.errors import BadDataError, ForeignFileError

if TYPE_CHECKING:
    from rpl_codeobject.values import KernelDescriptor

_Container = TypeVar("_Container")
_SUPPORTED_MAJOR = 1
#: Lists and maps take far more memory than their bytes; a kernel has one for each argument.
_MOST_CONTAINERS = 2_000_000


def decode_note(data: bytes, where: str) -> Mapping[str, Any]:
    """The note as a mapping; msgpack bounds every container by the length of ``data``."""
    count = itertools.count(1)

    def counted(container: _Container) -> _Container:
        if next(count) > _MOST_CONTAINERS:
            raise BadDataError(f"{where}: a metadata note of more than {_MOST_CONTAINERS} lists and maps")
        return container

    try:
        note = msgpack.unpackb(data, raw=False, list_hook=counted, object_hook=counted)
    except (ValueError, msgpack.UnpackException, RecursionError) as error:
        raise BadDataError(f"{where}: the metadata note is not msgpack ({type(error).__name__})") from error
    if not isinstance(note, Mapping):
        raise BadDataError(f"{where}: the metadata note is a {type(note).__name__}, expected a map")
    return note


def metadata_version(note: Mapping[str, Any], where: str) -> tuple[int, ...]:
    """``amdhsa.version``; another major version is refused."""
    version = note.get("amdhsa.version")
    if not isinstance(version, list) or not version or not all(isinstance(v, int) for v in version):
        raise BadDataError(f"{where}: amdhsa.version is {version!r}")
    if version[0] != _SUPPORTED_MAJOR:
        raise ForeignFileError(f"{where}: metadata version {version[0]} is not known (expected 1)")
    return tuple(version)


def kernel_maps(note: Mapping[str, Any], where: str) -> list[Mapping[str, Any]]:
    """The entries of ``amdhsa.kernels`` in file order; a code object without kernels has none."""
    kernels = note.get("amdhsa.kernels", [])
    if not isinstance(kernels, list) or not all(isinstance(k, Mapping) for k in kernels):
        raise BadDataError(f"{where}: amdhsa.kernels is not a list of maps")
    return kernels


def kernel_from(entry: Mapping[str, Any], descriptor: KernelDescriptor | None, where: str) -> Kernel:
    """One kernel; ``BadDataError`` names the missing or misshapen key."""
    fields = _Fields(entry, where)
    here = f"{where}: kernel {fields.text('.name')}"
    fields = _Fields(entry, here)
    return Kernel(
        name=fields.text(".name"),
        symbol=fields.text(".symbol"),
        arguments=_arguments(fields, here),
        kernarg_bytes=fields.number(".kernarg_segment_size"),
        kernarg_align=fields.number(".kernarg_segment_align"),
        lds_bytes=fields.number(".group_segment_fixed_size"),
        scratch_bytes=fields.number(".private_segment_fixed_size"),
        max_workgroup_size=fields.number(".max_flat_workgroup_size"),
        wavefront_size=fields.number(".wavefront_size"),
        required_workgroup=_workgroup(fields, here),
        dynamic_stack=fields.optional(".uses_dynamic_stack", bool),
        vgprs=fields.number(".vgpr_count"),
        agprs=fields.optional(".agpr_count", int),
        sgprs=fields.number(".sgpr_count"),
        vgpr_spills=fields.optional(".vgpr_spill_count", int),
        sgpr_spills=fields.optional(".sgpr_spill_count", int),
        workgroup_processor_mode=fields.optional(".workgroup_processor_mode", int),
        uniform_workgroups=fields.optional(".uniform_work_group_size", int),
        descriptor=descriptor,
    )


def _workgroup(fields: _Fields, where: str) -> tuple[int, ...] | None:
    sizes = fields.optional(".reqd_workgroup_size", list)
    if sizes is None:
        return None
    if not all(isinstance(size, int) for size in sizes):
        raise BadDataError(f"{where}: .reqd_workgroup_size is {sizes!r}")
    return tuple(sizes)


def _arguments(fields: _Fields, where: str) -> tuple[KernelArgument, ...]:
    entries = fields.optional(".args", list) or []
    arguments = []
    for index, entry in enumerate(entries):
        if not isinstance(entry, Mapping):
            raise BadDataError(f"{where}: argument {index} is not a map")
        argument = _Fields(entry, f"{where}, argument {index}")
        arguments.append(
            KernelArgument(
                offset=argument.number(".offset"),
                size=argument.number(".size"),
                value_kind=argument.text(".value_kind"),
                address_space=argument.optional(".address_space", str),
                name=argument.optional(".name", str),
            )
        )
    return tuple(arguments)


class _Fields:
    """Checked look-ups in one map of the note."""

    def __init__(self, entry: Mapping[str, Any], where: str) -> None:
        self._entry = entry
        self._where = where

    def number(self, key: str) -> int:
        value = self._entry.get(key)
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise BadDataError(f"{self._where}: {key} is {value!r}, expected a count")
        return value

    def text(self, key: str) -> str:
        value = self._entry.get(key)
        if not isinstance(value, str):
            raise BadDataError(f"{self._where}: {key} is {value!r}, expected a string")
        return value

    def optional(self, key: str, kind: type) -> Any:
        value = self._entry.get(key)
        if value is not None and not isinstance(value, kind):
            raise BadDataError(f"{self._where}: {key} is {value!r}, expected {kind.__name__}")
        return value
