# The team's vocabulary. Every target sets up what it needs in its own virtual environment.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
LM_EVAL_VERSIONS ?= 0.4.10 0.4.11 0.4.12 0.4.13
INSPECT_VERSIONS ?= 0.3.241 0.3.285
PYTEST ?= -n 2 --dist loadfile
DEMO_OUT ?= demo-out

.PHONY: demo test lint bench docs coverage wheel compat compat-dev clean help

help:
	@echo "demo  test  lint  bench  docs  coverage  wheel  compat  clean"

$(VENV)/.ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[all]'
	touch $@

$(VENV)/.%: $(VENV)/.ready pyproject.toml
	$(BIN)/python -m pip install --quiet --group $*
	touch $@

demo: $(VENV)/.ready  ## the main job end to end, on simulated models
	$(BIN)/harness-noise demo --out $(DEMO_OUT)

test: $(VENV)/.test  ## everything, warnings are errors
	$(BIN)/python -m pytest $(PYTEST)

lint: $(VENV)/.lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.test  ## side-by-side measurements, ratios in one run
	@for file in benchmarks/bench_*.py; do \
	  echo "== $$file"; $(BIN)/python $$file || missed="$$missed $$file"; \
	done; test -z "$$missed" || { echo "targets missed in:$$missed"; exit 1; }

coverage: $(VENV)/.test  ## coverage of the intervals by simulation, into the docs
	$(BIN)/python benchmarks/coverage.py docs/methods/coverage.md

docs: $(VENV)/.docs  ## the pages, into site/
	$(BIN)/mkdocs build --strict --quiet

wheel: $(VENV)/.test  ## build, look inside, and test what was built
	$(BIN)/python -m pip install --quiet build
	rm -rf dist && $(BIN)/python -m build --outdir dist . >/dev/null
	$(BIN)/python tests/packaging/check_wheel.py dist

# one environment per version of a harness
.SECONDARY:
.venv-%/.ready: pyproject.toml
	$(PYTHON) -m venv .venv-$*
	.venv-$*/bin/python -m pip install --quiet --upgrade pip
	.venv-$*/bin/python -m pip install --quiet --editable '.[parquet]' --group test '$(subst lm-eval,lm-eval[api],$(subst @,==,$*))'
	touch $@

compat-lm-eval-%: .venv-lm-eval@%/.ready
	.venv-lm-eval@$*/bin/python -m pytest $(PYTEST) tests/adapters -k "lm_eval"

compat-inspect-%: .venv-inspect-ai@%/.ready
	.venv-inspect-ai@$*/bin/python -m pytest $(PYTEST) tests/adapters -k "inspect and not lm_eval"

compat: $(LM_EVAL_VERSIONS:%=compat-lm-eval-%) $(INSPECT_VERSIONS:%=compat-inspect-%)
	-$(MAKE) compat-dev

compat-dev:  ## lm-eval's development version may fail; its reasons are printed, one line each
	$(MAKE) compat-lm-eval-0.5.0.dev1 PYTEST="$(PYTEST) -q --tb=no -rfE"

clean:
	rm -rf .venv .venv-* dist build site demo-out .pytest_cache .mypy_cache .ruff_cache .hypothesis
