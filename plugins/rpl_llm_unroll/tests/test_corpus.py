"""Every loop of the corpus gets exactly the verdicts that its comment states."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

import pytest
from rpl_llm_unroll_corpus import Expected, candidates, corpus_files, expectations
