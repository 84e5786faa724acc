"""Calls a library that has kernels: `driver.py LIBRARY VALUE`."""

import ctypes
import sys
from pathlib import Path

summed = ctypes.CDLL(str(Path(sys.argv[1]).resolve())).summed
summed.argtypes, summed.restype = (ctypes.c_float,), ctypes.c_float
print(f"{summed(float(sys.argv[2])):g}")
