# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Each of the many processes would compile every module again.
unexport PYTHONDONTWRITEBYTECODE
# Each fresh environment would ask the index for a newer pip, and wait long for one that does not answer.
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# The demo tells the time since then.
BEGAN := $(shell date +%s)
STAMP := $(VENV)/.installed
RUNNABLE := $(VENV)/.runnable

.PHONY: demo test test-long mutants check native dev system metadata schemas docs dist site clean

demo: $(RUNNABLE)         ## set up what running needs; build, profile and replay a HIP program, start to end, without a GPU
	@tools/install_system_packages demo
	@$(BIN)/python tools/demo.py --began $(BEGAN)

test: check native        ## set up, lint, type-check and run the tests: under ten minutes on two cores
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not long"

test-long: $(STAMP) native ## the tests that take long: wheels, fresh environments, sessions that are struck
	$(BIN)/python -m pytest -n 2 --dist worksteal -m long --durations=25 native tests plugins  # the longest first

mutants: $(STAMP)         ## SEED=N COUNT=100: the first run of a fresh draw of small changes of meaning (LIMIT=5 for some)
	$(BIN)/python -m pip install -q cosmic-ray
	$(BIN)/python tools/mutants/run.py first $(if $(SEED),--seed $(SEED)) $(if $(COUNT),--count $(COUNT)) $(if $(LIMIT),--limit $(LIMIT))

check: system $(STAMP)    ## lint and types only
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

native: system            ## the C++ part in build/, where a compiler and CMake are there
	@if command -v cmake >/dev/null && command -v g++ >/dev/null; \
	then cmake -S . -B build >/dev/null && cmake --build build -j 2; \
	else echo "rpl: no cmake or g++: the native part is not built and its tests are skipped" >&2; fi

dev: $(STAMP)             ## everything editable in .venv

system:                   ## compilers and browser for the tests, where the package manager may be used
	@tools/install_system_packages

$(RUNNABLE): requirements-run.txt pyproject.toml plugins/*/pyproject.toml native/pyproject.toml
	@tools/require_python $(PYTHON)
	@test -x $(BIN)/python || { echo "rpl: making $(VENV)"; $(PYTHON) -m venv $(VENV); }
	@echo "rpl: installing build tools (1 of 2)"
	@# One set of build tools for all distributions, instead of an environment with its own downloads for each.
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-compile "pip>=23.1" "hatchling>=1.27" "editables>=0.5" "hatch-fancy-pypi-readme>=24.1" "scikit-build-core>=0.10"
	@echo "rpl: installing rpl and what it needs (2 of 2)"
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-compile --no-build-isolation -r requirements-run.txt
	@touch $(RUNNABLE)

$(STAMP): requirements-dev.txt pyproject.toml plugins/*/pyproject.toml native/pyproject.toml
	@tools/require_python $(PYTHON)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --upgrade pip
	$(BIN)/python -m pip install -q "hatchling>=1.27" "editables>=0.5" "hatch-fancy-pypi-readme>=24.1" "scikit-build-core>=0.10"
	$(BIN)/python -m pip install -q --no-build-isolation -r requirements-dev.txt
	touch $(RUNNABLE) $(STAMP)

metadata: $(STAMP)        ## write version, addresses and pins into every distribution; VERSION=0.2.0 sets a new one
	$(BIN)/python tools/write_metadata.py $(if $(VERSION),--version $(VERSION))

schemas: $(STAMP)         ## write the committed JSON schemas anew, and what captures look like
	$(BIN)/python tools/write_schemas.py
	$(BIN)/python tools/write_capture_format.py

docs: $(STAMP)            ## write the generated parts of the documentation anew
	$(BIN)/python tools/generate_hook_docs.py
	$(BIN)/python tools/generate_public_api.py
	$(BIN)/python tools/generate_cli_reference.py

dist: $(STAMP)            ## every wheel and source distribution in dist/, built twice with the same bytes, and what they are made of
	rm -rf dist
	$(BIN)/python tools/build_distributions.py
	$(BIN)/python -m pip install -q cyclonedx-bom pip-audit
	$(BIN)/python tools/supply_chain.py sbom dist
	$(BIN)/python tools/supply_chain.py licences
	$(BIN)/python tools/supply_chain.py audit

site: $(STAMP)            ## the documentation as a site in build/site; a dead link is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --site-dir build/site

clean:
	rm -rf $(VENV) dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis
