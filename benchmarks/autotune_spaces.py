"""Fetch recorded search spaces for ``benchmarks/autotune.py``; nothing of them is committed.

    python benchmarks/autotune_spaces.py FOLDER [--looked-at]

Cache files of Kernel Tuner from one commit of AutoTuningAssociation/benchmark_hub (MIT), each checked by its
SHA-256. A file that is there and right is left alone. By default those that nothing was tuned to; with
``--looked-at`` those by which the built-in strategy and its constants were chosen.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from pathlib import Path
from urllib.parse import quote
from urllib.request import urlopen

from rpl_core.files.atomic import write_atomic
from rpl_core.values import frozen

_COMMIT = "8eeb99e7179e6838af95d392ac6c60cebfd8c434"
_SOURCE = f"https://raw.githubusercontent.com/AutoTuningAssociation/benchmark_hub/{_COMMIT}/"
_OTHERS = "currently_unused/cachefiles/KernelTuner data/"
_MOST_BYTES, _PATIENCE_S = 64 << 20, 60.0


@frozen
class _Space:
    """A file of the collection; ``name`` is what it is called here."""

    name: str
    path: str
    sha256: str


LOOKED_AT = (
    _Space(
        "convolution_milo_MI250X",
        "cachefiles/convolution_milo/MI250X.json.gz",
        "06d8da1397be0e0cfcccf938968ebf0fa709b53f9314bf091d2b9eb5e2cb1b69",
    ),
    _Space(
        "dedispersion_milo_W6600",
        "cachefiles/dedispersion_milo/W6600.json.gz",
        "5d10249dbf24d1b60925d03013a7f1da9200a35578a140490dd61d5b4444f64f",
    ),
    _Space(
        "convolution_milo_A100",
        "cachefiles/convolution_milo/A100.json.gz",
        "de449bddefb42721a9c92d63b0984caeb04cc48519d58135a487e832f8196b9d",
    ),
    _Space(
        "dedispersion_milo_MI250X",
        "cachefiles/dedispersion_milo/MI250X.json.gz",
        "bb0120691b702899148ec52c1c73b5168f5409bc3e98cc49873e2f0f8da18136",
    ),
    _Space(
        "convolution_milo_mi50",
        _OTHERS + "convolution_milo/mi50.json.gz",
        "d530e8bd0afff72880f77c0c9cd7716bae4879721f9126c582b0a5d95b11705c",
    ),
    _Space(
        "pnpoly_RTX_3090",
        _OTHERS + "pnpoly/RTX_3090.json.gz",
        "d6f238c36dc83dde6b470f9f6488c21140ce233d345ef4fc4e0cd9763b4d3759",
    ),
)
HELD_OUT = (
    _Space(
        "gemm_RTX_3090",
        _OTHERS + "gemm/RTX_3090.json.gz",
        "a829d92217a8fc0477cb582a98df7496748b5b5d5bffb876db4112f3aff352c3",
    ),
    _Space(
        "gemm_RTX_Titan",
        _OTHERS + "gemm/RTX_Titan.json.gz",
        "85d4f512f5f2abb541cc4d8c11aa05aa2157ef5562d79b702bd3caf63023c429",
    ),
    _Space(
        "convolution_RTX_2080_Ti",
        _OTHERS + "convolution/RTX_2080_Ti.json.gz",
        "cbbbbd146a7265ca017c682916cfa4460af77960c13604890ff61cf3c2017019",
    ),
    _Space(
        "convolution_RTX_3090",
        _OTHERS + "convolution/RTX_3090.json.gz",
        "6d6262dacd8cdf1d247529160984b2c932e8b0174c3603c7f6544052a1f34488",
    ),
    _Space(
        "pnpoly_RTX_Titan",
        _OTHERS + "pnpoly/RTX_Titan.json.gz",
        "ff750b82c6042274d6c3587544e82d96f3f35d37b63ee606b34c9dad16b34f77",
    ),
    _Space(
        "pnpoly_RTX_2080_Ti",
        _OTHERS + "pnpoly/RTX_2080_Ti.json.gz",
        "b3d3632775fd946c64a15bfefc743a1f6c9b2795cf8ca4a1f14bd083cdc4103a",
    ),
    _Space(
        "convolution_milo_W7800",
        "cachefiles/convolution_milo/W7800.json.gz",
        "fa1e0d71a9e9b37ba584877d01c3aaab589827ef6a749e404c887aa07f0ec0bf",
    ),
    _Space(
        "dedispersion_milo_A4000",
        "cachefiles/dedispersion_milo/A4000.json.gz",
        "657e9de1ba7a029324c71a62d13e1dd06a8ae5311af0255c15a086d0bbad6044",
    ),
)


def fetch(space: _Space, folder: Path) -> Path:
    """The file in ``folder``, loaded unless it is there. Raises ``ValueError`` for any other content."""
    path = folder / f"{space.name}.json.gz"
    if path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == space.sha256:
        return path
    with urlopen(_SOURCE + quote(space.path), timeout=_PATIENCE_S) as stream:
        data = stream.read(_MOST_BYTES)
    found = hashlib.sha256(data).hexdigest()
    if found != space.sha256:
        raise ValueError(f"{space.path} has the hash {found}, not {space.sha256}")
    write_atomic(path, data)
    return path


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--looked-at", action="store_true", help="the spaces that choices were made by")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    wrong = 0
    for space in LOOKED_AT if given.looked_at else HELD_OUT:
        try:
            print(fetch(space, given.folder))
        except (OSError, ValueError) as error:
            wrong += 1
            print(f"{space.name}: {error}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
