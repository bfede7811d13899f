# The team's vocabulary. Every target sets up what it needs in its own virtual environment.
PYTHON ?= python3
PYTHON312 ?= python3.12
VENV ?= .venv
BIN := $(VENV)/bin
LM_EVAL_VERSIONS ?= 0.4.10 0.4.11 0.4.12 0.4.13
INSPECT_VERSIONS ?= 0.3.262 0.3.285
PYTEST ?= -n 2 --dist loadfile
DEMO_OUT ?= demo-out
FUZZ_SECONDS ?= 600
PYTHONS ?= 3.11 3.12 3.13 3.14
GUESTS ?=
AUDIT ?=
PINS ?= .pins
TORCH ?= torch==2.13.0

# Packages go into the environment of the first argument: by uv, which pip brings, and by pip where uv cannot
# (a proxy, a keyring or an index that only pip is set up for).
define install
	$(1)/bin/python -m pip install --quiet --upgrade pip
	-$(1)/bin/python -m pip install --quiet uv
	VIRTUAL_ENV=$(abspath $(1)) $(1)/bin/uv pip install --quiet $(2) || \
	  { echo "uv could not; pip installs it, which takes some minutes"; $(1)/bin/python -m pip install --quiet $(2); }
endef

.PHONY: demo check test test-slow corpus lint prose bench bench-small growth pictures docs coverage pins pins-check wheel compat compat-dev models faults fuzz guests pythons audit lock lowest clean help

help:
	@echo "demo  check  test  test-slow  corpus  lint  prose  bench  bench-small  growth  pictures  docs  coverage  pins  pins-check  wheel  compat  models  faults  fuzz  guests  pythons  audit  lock  lowest  clean"

$(VENV)/.ready: pyproject.toml
	@echo "Step 1: set up $(VENV) with both harnesses (once; half a minute by uv, some minutes by pip)"
	$(PYTHON) -m venv $(VENV)
	$(call install,$(VENV),--editable '.[all]')
	touch $@

$(VENV)/.%: $(VENV)/.ready pyproject.toml
	$(call install,$(VENV),--group $*)
	touch $@

demo: $(VENV)/.ready  ## the main job end to end, on simulated models
	@echo "Step 2: run the demo into $(DEMO_OUT) (about a minute)"
	$(BIN)/python -m harness_noise.extra.demo -o $(DEMO_OUT)

check: $(VENV)/.test $(VENV)/.lint  ## while one works: style, and the tests that start no harness; says how long it took
	@start=$$(date +%s) && \
	$(BIN)/ruff check --quiet . && $(BIN)/ruff format --check --quiet . && \
	$(BIN)/python -m pytest -n auto --dist loadfile $(PYTEST) -q --hypothesis-profile=check --cases 12 \
	  -m "not slow and not browser and not process and not simulation" \
	  tests/core tests/unit tests/extra tests/property tests/reference tests/cli && \
	echo "make check: $$(($$(date +%s) - start)) s"

test: $(VENV)/.test  ## all but the slow ones, warnings are errors
	$(BIN)/python -m pytest -m "not slow" $(PYTEST)

test-slow: $(VENV)/.test  ## long campaigns and simulations; each has a short version in `make test`; a long one holds up no other of its file
	$(BIN)/python -m pytest -m slow $(subst loadfile,worksteal,$(PYTEST))

corpus: $(VENV)/.test  ## real files of others: fetch (MIRRORS=folder of local copies) and read them
	$(BIN)/python tests/corpus/fetch.py $(if $(MIRRORS),--mirrors '$(MIRRORS)')
	$(BIN)/python -m pytest $(PYTEST) tests/corpus

lint: $(VENV)/.lint prose
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/codespell
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-actions action.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-forms $(wildcard .github/ISSUE_TEMPLATE/[!c]*.yml)
	$(BIN)/check-jsonschema --builtin-schema vendor.citation-file-format CITATION.cff

prose: $(VENV)/.ready  ## the sentences of README and docs against their budgets, which only go down (tests/prose.json)
	$(BIN)/python tests/prose.py

bench: $(VENV)/.test  ## side-by-side ratios, into benchmarks/README.md; BENCH=read for one section
	PYTHONPATH=tests $(BIN)/python benchmarks/table.py $(BENCH)

bench-small: $(VENV)/.test  ## every benchmark in a small size, to see that it runs; measures nothing
	PYTHONPATH=tests $(BIN)/python benchmarks/table.py --small $(BENCH)

growth: $(VENV)/.test  ## how time and memory grow, into the docs
	$(BIN)/python benchmarks/growth.py docs/performance.md docs/assets/growth.svg

pictures: $(VENV)/.test  ## the README's pictures, when a test says that they are stale
	$(BIN)/python docs/pictures.py

coverage: $(VENV)/.test  ## coverage of the intervals by simulation, into the docs
	$(BIN)/python benchmarks/coverage.py docs/methods/coverage.md
	$(BIN)/python benchmarks/coverage_weak.py docs/methods/coverage-weak.md
	$(BIN)/python benchmarks/coverage_sequential.py docs/methods/sequential.md
	$(BIN)/python benchmarks/coverage_slices.py docs/methods/coverage-slices.md
	$(BIN)/python benchmarks/coverage_gate.py docs/methods/coverage-gate.md
	$(BIN)/python benchmarks/coverage_judges.py docs/methods/coverage-judges.md

pins: $(VENV)/.test  ## what every command says on many inputs, into PINS: before a change that must not change it
	PYTHONPATH=tests $(BIN)/python -m pins.pin make $(PINS)

pins-check: $(VENV)/.test  ## ask everything again and show every difference
	PYTHONPATH=tests $(BIN)/python -m pins.pin check $(PINS)

docs: $(VENV)/.docs  ## the pages, into site/
	$(BIN)/mkdocs build --strict --quiet

wheel: $(VENV)/.test  ## build, look inside, and test what was built
	$(call install,$(VENV),build)
	rm -rf dist && $(BIN)/python -m build --outdir dist . >/dev/null
	$(BIN)/python tests/packaging/check_wheel.py dist

# one environment per version of a harness
.SECONDARY:
.venv-%/.ready: pyproject.toml
	$(PYTHON) -m venv .venv-$*
	$(call install,.venv-$*,--editable '.[parquet]' --group test '$(subst lm-eval,lm-eval[api],$(subst @,==,$*))')
	touch $@

compat-lm-eval-%: .venv-lm-eval@%/.ready
	.venv-lm-eval@$*/bin/python -m pytest $(PYTEST) tests/adapters -k "lm_eval"

compat-inspect-%: .venv-inspect-ai@%/.ready
	.venv-inspect-ai@$*/bin/python -m pytest $(PYTEST) tests/adapters -k "inspect and not lm_eval"

.venv-harbor/.ready: pyproject.toml
	$(PYTHON312) -m venv .venv-harbor
	$(call install,.venv-harbor,--editable '.[parquet]' --group test 'harbor>=0.24' every-eval-ever)
	touch $@

compat-harbor: .venv-harbor/.ready  ## a job of Harbor with the plugin, Every Eval Ever's validator: both need Python 3.12
	.venv-harbor/bin/python -m pytest $(PYTEST) tests/adapters tests/extra/formats -k "harbor or every_eval_ever"

compat: $(LM_EVAL_VERSIONS:%=compat-lm-eval-%) $(INSPECT_VERSIONS:%=compat-inspect-%) compat-harbor
	-$(MAKE) compat-dev

compat-dev:  ## lm-eval's development version may fail; its reasons are printed, one line each
	$(MAKE) compat-lm-eval-0.5.0.dev1 PYTEST="$(PYTEST) -q --tb=no -rfE"

# pip alone: it finds builds of torch for the processor that lie on the disk, which uv does not look for
.venv-models/.ready: pyproject.toml
	$(PYTHON) -m venv .venv-models
	.venv-models/bin/python -m pip install --quiet --upgrade pip
	.venv-models/bin/python -m pip install --quiet --editable '.[parquet]' --group test --group models '$(TORCH)'
	touch $@

models: .venv-models/.ready  ## lm-eval's own models and clients on a tiny trained Llama; TORCH=… for another build
	HARNESS_NOISE_TINY_MODEL=.venv-models/tiny OMP_NUM_THREADS=1 .venv-models/bin/python -m pytest -q tests/models

faults: $(VENV)/.test  ## kills at every file operation, exceptions at every call in both harnesses; half an hour and more
	$(BIN)/python tests/faults/campaign.py
	HARNESS_NOISE_WHOLE_WALK=1 $(BIN)/python -m pytest $(PYTEST) tests/adapters/test_lm_eval_faults.py tests/adapters/test_inspect_faults.py

fuzz: $(VENV)/.test  ## damaged files for each reader, FUZZ_SECONDS each; what is found belongs into the tests
	PYTHONPATH=tests $(BIN)/python -m fuzz.campaign $(FUZZ_READERS) --seconds $(FUZZ_SECONDS) --findings fuzz-findings

guests: $(VENV)/.test  ## the harnesses' own tests without us, with us, and with the flag on; GUESTS="inspect --tests inspect=FOLDER"
	$(BIN)/python tests/guests/run.py $(GUESTS)

pythons:  ## ours on every Python that this machine has; what it lacks is said
	$(PYTHON) tests/pythons.py $(PYTHONS)

audit: $(VENV)/.ready  ## known weaknesses of what is installed, by the index's advisories; where it has none: AUDIT="--vulnerability-service osv"
	$(call install,$(VENV),pip-audit)
	$(BIN)/python -m pip freeze --exclude-editable > $(VENV)/installed.txt
	$(BIN)/pip-audit $(AUDIT) --requirement $(VENV)/installed.txt --no-deps --disable-pip --strict
	$(BIN)/pip-audit $(AUDIT) --requirement .github/gate.txt --require-hashes --disable-pip --strict

lock: $(VENV)/.ready  ## what the Action installs, with hashes, into .github/gate.txt
	@head -2 .github/gate.txt > .github/gate.new
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate \
	  --extra zstd --extra parquet pyproject.toml .github/gate.in >> .github/gate.new
	mv .github/gate.new .github/gate.txt

.venv-lowest/.ready: pyproject.toml
	$(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/python -m pip install --quiet --upgrade pip uv
	VIRTUAL_ENV=.venv-lowest .venv-lowest/bin/uv pip install --quiet --resolution lowest-direct --editable '.[all]'
	VIRTUAL_ENV=.venv-lowest .venv-lowest/bin/uv pip install --quiet --group test
	touch $@

lowest: .venv-lowest/.ready  ## the oldest versions that pyproject.toml allows
	.venv-lowest/bin/python -m pytest $(PYTEST) tests/core tests/unit tests/extra tests/property tests/reference

clean:
	rm -rf .venv .venv-* dist build site demo-out .pytest_cache .mypy_cache .ruff_cache .hypothesis
