# `make demo` and `make test` do their whole set-up on a machine that has Python ≥ 3.11 with venv, and make.
PYTHON ?= python3
VENV   ?= .venv
PIP     = -m pip --quiet --disable-pip-version-check
UV     ?= uv
COMPILE = $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header

.PHONY: help demo test lint unit locks docs mutants bench flux clean
help: ## show this
	@sed -n 's/^\([a-z]*\):.*## /  \1\t/p' $(MAKEFILE_LIST)

demo: $(VENV)/run/ready ## ship an example, verify it, and see two tampered copies refused
	PATH="$(CURDIR)/$(VENV)/run/bin:$$PATH" sh examples/demo.sh

test: lint unit ## everything that must hold: style, types, and every test, against the built wheel

lint: $(VENV)/test/ready
	$(VENV)/test/bin/ruff check .
	$(VENV)/test/bin/ruff format --check .
	$(VENV)/test/bin/mypy --python-executable $(VENV)/test/bin/python

unit: $(VENV)/test/ready
	$(VENV)/test/bin/coverage erase
	$(VENV)/test/bin/pytest -q -n 2 --cov --cov-report= $(ARGS)
	rm -f .coverage.* # of processes that the tests killed in the middle of a line
	$(VENV)/test/bin/coverage report

docs: $(VENV)/test/ready ## write the generated pages again
	$(VENV)/test/bin/python docs/generate.py

mutants: $(VENV)/test/ready ## plant every fault of tests/mutants.py and see a test catch it
	$(VENV)/test/bin/python tests/mutants.py

bench: $(VENV)/test/ready ## compare with the peers of tests/interop/peers.sh; ARGS names works
	$(VENV)/test/bin/python benchmarks/run.py $(ARGS)

flux: $(VENV)/test/ready ## let a real Flux apply examples/fleet and refuse what is forged, and its API server judge (tests/interop/real_flux.py, flux_verdicts.py)
	OCIPACK_INTEROP=required $(VENV)/test/bin/pytest -q tests/interop/real_flux.py tests/interop/flux_verdicts.py $(ARGS)

# A virtual environment holds exactly what its lock names, and the wheel built from this tree; the
# wheel is made again whenever a source file is newer.
SOURCES := pyproject.toml README.md $(shell find ocipack -name '*.py' -o -name '*.xz' -o -name '*.json' 2>/dev/null)
$(VENV)/%/ready: requirements/%.lock $(SOURCES)
	test -x $(VENV)/$*/bin/python || $(PYTHON) -m venv $(VENV)/$*
	cmp -s $< $(VENV)/$*/installed.lock || { $(VENV)/$*/bin/python $(PIP) install --require-hashes --no-deps -r $< && cp $< $(VENV)/$*/installed.lock; }
	rm -rf $(VENV)/$*/wheel
	$(VENV)/$*/bin/python $(PIP) wheel --no-build-isolation --no-deps --wheel-dir $(VENV)/$*/wheel .
	$(VENV)/$*/bin/python $(PIP) install --no-deps --no-index --force-reinstall $(VENV)/$*/wheel/*.whl
	touch $@

locks: ## resolve the dependencies again (needs uv)
	$(COMPILE) $(ARGS) -o requirements/run.lock pyproject.toml requirements/run.in
	$(COMPILE) $(ARGS) -o requirements/test.lock requirements/test.in

clean: ## remove what the other targets made
	rm -rf $(VENV) demo dist .coverage*
