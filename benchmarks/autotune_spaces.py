"""Fetch recorded search spaces for ``benchmarks/autotune.py``; nothing of them is committed.

    python benchmarks/autotune_spaces.py FOLDER [--which held-out|judged-before|looked-at]

Cache files of Kernel Tuner from one commit each of AutoTuningAssociation/benchmark_hub and
fjwillemsen/kernel_tuner_paper (both MIT), each checked by its SHA-256. A file that is there and right is left
alone. ``held-out``, the default, are those that the strategy in force was judged by once, and nothing was
tuned to; ``judged-before`` those that the one before was judged by, which then showed what to mend;
``looked-at`` those by which constants were chosen. The larger hotspot_milo and gemm_milo were never used.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from pathlib import Path
from urllib.parse import quote
from urllib.request import urlopen

from rpl_core.files import write_atomic
from rpl_core.values import frozen

_RAW = "https://raw.githubusercontent.com/"
_SOURCE = f"{_RAW}AutoTuningAssociation/benchmark_hub/8eeb99e7179e6838af95d392ac6c60cebfd8c434/"
_PAPER = f"{_RAW}fjwillemsen/kernel_tuner_paper/5ea2c227d69d89c80ba964ec76592f8a682448b6/"
_OTHERS = "currently_unused/cachefiles/KernelTuner data/"
_MOST_BYTES, _PATIENCE_S = 64 << 20, 60.0


@frozen
class _Space:
    """A file of a collection; ``name`` is what it is called here."""

    name: str
    path: str
    sha256: str
    source: str = _SOURCE

    @property
    def file_name(self) -> str:
        return f"{self.name}.json{'.gz' if self.path.endswith('.gz') else ''}"


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
JUDGED_BEFORE = (
    _Space(
        "convolution_RTX_3060_laptop",
        _OTHERS + "convolution/RTX_3060_laptop.json.gz",
        "7e19e10c43a71916bd5de063047d2fd0c50752fcb9af7cf5257baa262acd7c35",
    ),
    _Space(
        "convolution_milo_A4000",
        "cachefiles/convolution_milo/A4000.json.gz",
        "fd773e882875902173ed50a7f9db6a28260ea25b87cf26211a7c627b94c0b8e8",
    ),
    _Space(
        "dedispersion_milo_A100",
        "cachefiles/dedispersion_milo/A100.json.gz",
        "156253bd3ba2d956496bae6cb57a8601883b9820b50ad5b1b90f02ac4f8ce5fd",
    ),
    _Space(
        "expdist_A4000",
        "kernels/outputdata/expdist/expdist_NVIDIA_RTX_A4000_size-32768x32768_cache.json",
        "2d1a057f5f67397cbf7ccf3001b0bc71812009810bf78ca06f12203357077cef",
        _PAPER,
    ),
    _Space(
        "gemm_RTX_2080_Ti",
        _OTHERS + "gemm/RTX_2080_Ti.json.gz",
        "8cd18f61f0c237ed5ca08002b6acd2d7ac665d4200f969aa5b42c181cea2e326",
    ),
    _Space(
        "hotspot_A100",
        "compare_real_world_impact/results/hotspot/A100_f=pythonconstraint_i=0.json",
        "ce66bb8e080852cd57dd85e9bea0c4a077959172c916aab46015d91e79c97b41",
        _PAPER,
    ),
    _Space(
        "pnpoly_RTX_3060_laptop",
        _OTHERS + "pnpoly/RTX_3060_laptop.json.gz",
        "16d8ca8a7ebbc52d00da8696a81c566960ef412969442263f327aef0b6f1b7d5",
    ),
)
HELD_OUT = (
    _Space(
        "convolution_RTX_Titan",
        _OTHERS + "convolution/RTX_Titan.json.gz",
        "28adba7610a20117c72fc713dc22b6134c5f315fbe5e2412b5c020186359b064",
    ),
    _Space(
        "convolution_milo_A6000",
        "cachefiles/convolution_milo/A6000.json.gz",
        "e0992a3baa24e0280f1706319145d473933157ef554df094a4357e435cb0de53",
    ),
    _Space(
        "convolution_milo_W6600",
        "cachefiles/convolution_milo/W6600.json.gz",
        "de31e4d1b2f85ee4447123e237e69263667046a8f9b95b3440074aa5412fc6ff",
    ),
    _Space(
        "dedispersion_milo_A6000",
        "cachefiles/dedispersion_milo/A6000.json.gz",
        "5a9c1e1bc9d6c0c5d8997fa4ea93517e1e26b5ce4449e1f81bc7bed793f76d1b",
    ),
    _Space(
        "dedispersion_milo_W7800",
        "cachefiles/dedispersion_milo/W7800.json.gz",
        "50da9d5e88388d9d5d777654530c8416f9b928ca9bb6976d7df2481a1fc4bd8e",
    ),
    _Space(
        "gemm_RTX_3060_laptop",
        _OTHERS + "gemm/RTX_3060_laptop.json.gz",
        "e56896a5f098a6bc8751497b8b1a29a019a621e0edf342dc1b4cdc37f1cc786c",
    ),
    _Space(
        "hotspot_A4000",
        "compare_real_world_impact/results/hotspot/A4000_f=pythonconstraint_i=0.json",
        "fef183cf16e69b19524ee25b4294654f972f68d224b4d2d162b247da31606215",
        _PAPER,
    ),
)


def fetch(space: _Space, folder: Path) -> Path:
    """The file in ``folder``, loaded unless it is there. Raises ``ValueError`` for any other content."""
    path = folder / space.file_name
    if path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == space.sha256:
        return path
    with urlopen(space.source + quote(space.path), timeout=_PATIENCE_S) as stream:
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
    groups = {"held-out": HELD_OUT, "judged-before": JUDGED_BEFORE, "looked-at": LOOKED_AT}
    parser.add_argument("--which", choices=groups, default="held-out", help="see above")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    wrong = 0
    for space in groups[given.which]:
        try:
            print(fetch(space, given.folder))
        except (OSError, ValueError) as error:
            wrong += 1
            print(f"{space.name}: {error}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
