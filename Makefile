# Each target makes the .venv it needs, with the system's python3 and pip alone.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: setup demo test test-slow bench remote check format docs coverage release figures reproduction evaluation private clean

setup: $(VENV)/ready-dev

demo: $(VENV)/ready
	$(BIN)/nashcast demo

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

evaluation: $(VENV)/ready-dev
	$(BIN)/python benchmarks/federation.py

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

$(VENV)/ready-docs: requirements/docs.lock $(VENV)/ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/docs.lock
	touch $@
