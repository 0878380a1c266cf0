# Each target makes the .venv it needs, with the system's python3 and pip alone.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CORE_TESTS := tests/agents tests/games tests/mixing tests/federation tests/encoders

.PHONY: setup demo test test-slow bench remote check format docs coverage release figures reproduction evaluation evaluation-quick private clean

setup: $(VENV)/ready-dev

demo: $(VENV)/ready
	$(BIN)/nashcast demo --output build/demo

test: $(VENV)/ready-dev
	$(BIN)/python -m pytest -n logical --dist worksteal -m "not slow"

test-slow: $(VENV)/ready-dev
	$(BIN)/python -m pytest -n logical --dist worksteal -m slow

bench: $(VENV)/ready-dev
	$(BIN)/python benchmarks/run.py

remote: $(VENV)/ready-dev
	$(BIN)/python benchmarks/remote.py

check: $(VENV)/ready-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright
	$(BIN)/lint-imports --no-cache

format: $(VENV)/ready-dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# Lines of the core that its own tests run; build/coverage/index.html shows the others.
coverage: $(VENV)/ready-dev
	COVERAGE_FILE=build/coverage/data $(BIN)/python -m coverage run -m pytest -m "not slow" $(CORE_TESTS)
	COVERAGE_FILE=build/coverage/data $(BIN)/python -m coverage html --quiet
	COVERAGE_FILE=build/coverage/data $(BIN)/python -m coverage report --skip-covered

# Wheel and source archive in build/release, each installed in a clean environment and tried without extras.
release: $(VENV)/ready-release
	rm -rf build/release build/lib
	$(BIN)/python -m build --no-isolation --outdir build/release .
	for file in build/release/nashcast-*; do \
		rm -rf build/clean && $(PYTHON) -m venv build/clean && \
		build/clean/bin/python -m pip install --quiet --disable-pip-version-check $$file && \
		build/clean/bin/python .ci/check_install.py || exit 1; \
	done
	rm -rf build/clean

# The site, into build/site. A broken link, a page outside the navigation or a formula that cannot be read is an error.
docs: $(VENV)/ready-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	@echo "build/site/index.html"

figures: $(VENV)/ready-dev
	$(BIN)/python benchmarks/figures.py
	$(BIN)/python benchmarks/together.py
	$(BIN)/python benchmarks/measured.py

reproduction: $(VENV)/ready-dev
	$(BIN)/nashcast reproduce all --as-published
	$(BIN)/python benchmarks/reproduction.py
	$(BIN)/python benchmarks/measured.py

# Fresh streams need their files once: nashcast data fetch fresh. Goes on where it was stopped.
evaluation: $(VENV)/ready-dev
	$(BIN)/python benchmarks/federation.py
	$(BIN)/python benchmarks/peers.py

# The same tables over a few short streams and fewer peers, into build/evaluation-quick.
evaluation-quick: $(VENV)/ready-dev
	$(BIN)/python benchmarks/peers.py --quick

private: $(VENV)/ready-dev
	$(BIN)/python benchmarks/private.py

clean:
	rm -rf $(VENV) build
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/ready: requirements/run.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("nashcast needs Python 3.11 or newer; set PYTHON=…" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/run.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

$(VENV)/ready-dev: requirements/dev.lock $(VENV)/ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/dev.lock
	touch $@

$(VENV)/ready-release: requirements/release.lock $(VENV)/ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/release.lock
	touch $@

$(VENV)/ready-docs: requirements/docs.lock $(VENV)/ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/docs.lock
	touch $@
