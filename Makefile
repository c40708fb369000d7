# All targets of this project. `make help` lists them; PIP_ARGS is passed to pip.
PYTHON ?= python3
PIP_ARGS ?=
# Another interpreter gets a separate environment: `make test PYTHON=python3.13`.
VENV := .venv$(patsubst %,-%,$(filter-out python3,$(notdir $(PYTHON))))
RUN := $(VENV)/bin/python -m
STAMP := $(VENV)/installed
# Models this small gain nothing from threads, and lose much on busy cores.
ONE_THREAD := OMP_NUM_THREADS=$(or $(OMP_NUM_THREADS),1)
TEST_ENVIRONMENT := $(ONE_THREAD) CUDA_VISIBLE_DEVICES=
# Each test file runs in one process, so that its fixtures are made once.
TWO_AT_ONCE := -n 2 --dist loadfile

.DEFAULT_GOAL := help
.PHONY: help install demo test lint types layers tests test-extras docs dist dist-native coverage format golden same-loss mutants crash-campaign random-bilm fuzz bench bench-smoke paper paper-check clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | sort | expand -t 18

install: $(STAMP)  ## create .venv and install the project with its tools

# An existing PyTorch in .venv is reused: its pin is left out of the constraints.
$(STAMP): setup.cfg pyproject.toml constraints.txt
	test -x $(VENV)/bin/python || $(PYTHON) -m venv $(VENV)
	if $(VENV)/bin/python -c 'import torch' 2>/dev/null; \
	then grep -v '^torch==' constraints.txt > $(VENV)/constraints.txt; \
	else cp constraints.txt $(VENV)/constraints.txt; fi
	$(RUN) pip install --quiet --disable-pip-version-check $(PIP_ARGS) \
		-c $(VENV)/constraints.txt -e '.[dev]'
	touch $(STAMP)

demo: install  ## pretrain a tiny biLM, train a tagger without it, with it and with mini
	$(ONE_THREAD) $(VENV)/bin/python experiments/demo/run.py

test: lint types layers same-loss tests  ## all checks and the whole test suite

lint: install
	$(RUN) ruff check .
	$(RUN) ruff format --check .

types: install
	$(RUN) mypy

layers: install
	$(VENV)/bin/lint-imports

# Counting lines adds half to the time of a test, so only those of single modules are counted.
tests: install
	$(TEST_ENVIRONMENT) $(RUN) pytest $(TWO_AT_ONCE) --cov --cov-fail-under=90 tests/unit
	$(TEST_ENVIRONMENT) $(RUN) pytest $(TWO_AT_ONCE) --ignore tests/unit

# Triton's kernels run in its interpreter there; PyTorch's builds for CUDA have Triton.
test-extras: $(VENV)/installed-triton  ## tests that need Triton, zsh, fish, a browser, other interpreters or engines; those without are skipped
	$(TEST_ENVIRONMENT) $(RUN) pytest -o python_files='extra_*.py' tests/extras

# A warning is an error: a link or an anchor that leads nowhere, a page that no list has.
docs: $(VENV)/installed-docs  ## build the documentation site: build/site/html/index.html
	$(VENV)/bin/python docs/site/stage.py build/site/source
	$(ONE_THREAD) $(RUN) sphinx -q -n -W --keep-going -c docs/site -d build/site/doctrees \
		build/site/source build/site/html

$(VENV)/installed-docs: $(STAMP)
	$(RUN) pip install --quiet --disable-pip-version-check $(PIP_ARGS) \
		-c $(VENV)/constraints.txt -e '.[docs]'
	touch $@

$(VENV)/installed-triton: $(STAMP)
	$(RUN) pip install --quiet --disable-pip-version-check $(PIP_ARGS) \
		-c $(VENV)/constraints.txt triton
	touch $@

# The time of the last commit, so that the same commit gives the same bytes.
dist: install  ## build the sdist and the wheel in dist/
	rm -rf dist
	SOURCE_DATE_EPOCH=$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct || date +%s)} $(RUN) build --outdir dist

# The pure wheel stays the default; this one has compiled kernels for AVX2 and AVX-512.
dist-native: dist  ## build a wheel for this platform in dist/native, which needs no compiler
	$(VENV)/bin/python tools/native_wheel.py dist/*.whl --output-dir dist/native

coverage: install  ## list the lines that no test runs
	$(TEST_ENVIRONMENT) $(RUN) pytest $(TWO_AT_ONCE) --cov --cov-report=term-missing:skip-covered

format: install  ## format the code
	$(RUN) ruff check --fix .
	$(RUN) ruff format .

golden: install  ## rewrite the filled configs that the tests compare with
	$(RUN) pytest tests/golden --write-golden -q

same-loss: install  ## compare the losses of a seeded 20-step run with the recorded ones
	$(TEST_ENVIRONMENT) $(VENV)/bin/python benchmarks/same_loss.py

mutants: install  ## put N small faults into copies of the package; list those that no test detects
	$(ONE_THREAD) $(VENV)/bin/python benchmarks/mutants.py --count $(or $(N),200) $(ARGS)

crash-campaign: install  ## kill jobs at N random moments and stop them at 10 (N=50); resume and compare the results
	$(VENV)/bin/python benchmarks/crash_campaign.py --kills $(or $(N),50)

random-bilm: install  ## write a randomly initialized biLM (BILM=mini OUT=runs/mini-random SEED=13370 TEXT=...)
	$(VENV)/bin/python benchmarks/random_bilm.py $(or $(BILM),mini) \
		--output-dir $(or $(OUT),runs/$(notdir $(or $(BILM),mini))-random) \
		--seed $(or $(SEED),13370) $(if $(TEXT),--text $(TEXT))

fuzz: install  ## run N mutated configs, studies, data, weights, runs and corpora each (N=1000, TARGETS=...)
	$(TEST_ENVIRONMENT) $(RUN) tests.fuzz $(TARGETS) --number $(or $(N),1000)

bench: install  ## compare our speed with that of others (PEERS=DIR SCRIPTS=DIR ARGS=...)
	$(VENV)/bin/python benchmarks/compare.py --peers '$(PEERS)' --scripts '$(SCRIPTS)' $(ARGS)

bench-smoke: install  ## compare the fast paths with the plain ones in one process (two minutes)
	CUDA_VISIBLE_DEVICES= $(VENV)/bin/python benchmarks/smoke.py $(ARGS)

# The most important tables come first. `bilms` trains biLMs that `appendix` reads.
PAPER := $(foreach study,table1 table4 table5 table6 table2 table3 figure2 bilms appendix,\
	$(if $(wildcard experiments/paper/$(study).jsonnet),$(study)))
# `appendix` can be checked once the biLMs of `bilms` are there.
PAPER_CHECKED = $(if $(wildcard experiments/results/bilms/runs),$(PAPER),$(filter-out appendix,$(PAPER)))
PAPER_CONTROL := runs/mini-control

# The folder of a study is its folder of results, where Git ignores the runs.
paper: install $(PAPER_CONTROL)  ## train the missing runs of the paper's tables, write docs/evidence.md (JOBS=2)
	status=0; for study in $(PAPER); do \
		if [ $$study = table1 ]; then \
			$(ONE_THREAD) $(VENV)/bin/python benchmarks/simple_baselines.py \
				experiments/paper/$$study.jsonnet -s experiments/results/$$study --final \
				|| status=$$?; \
		fi; \
		$(ONE_THREAD) $(VENV)/bin/elmo study experiments/paper/$$study.jsonnet \
			-s experiments/results/$$study --jobs $(or $(JOBS),2) --final \
			$$([ $$study = table1 ] || echo --reuse experiments/results/table1) || status=$$?; \
		$(VENV)/bin/python experiments/paper/evidence.py || status=$$?; \
	done; exit $$status

paper-check: install $(PAPER_CONTROL)  ## check the studies of the paper, after making the control; list missing runs and hours
	status=0; for study in $(PAPER_CHECKED); do \
		$(VENV)/bin/elmo check experiments/paper/$$study.jsonnet || status=$$?; \
	done; \
	$(VENV)/bin/python experiments/paper/evidence.py --missing; exit $$status

$(PAPER_CONTROL):
	$(VENV)/bin/python benchmarks/random_bilm.py mini --output-dir $@ --text experiments/demo/lm_train.txt

clean:  ## remove the environment, the output of the demo, the site and distributions
	rm -rf .venv .venv-* build dist runs/demo
