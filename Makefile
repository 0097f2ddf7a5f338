# Every target makes what it needs from a bare Python 3.11; the second run is quick.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
JOBS ?= auto

.PHONY: demo test lint bench clean
.DEFAULT_GOAL := demo

$(VENV)/.created:
	$(PYTHON) -m venv $(VENV)
	touch $@

# One stamp per extra: a change of pyproject.toml installs anew.
$(VENV)/.installed-%: pyproject.toml $(VENV)/.created
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$*]'
	touch $@

demo: $(VENV)/.installed-examples
	$(BIN)/python -m examples.digits

test: $(VENV)/.installed-test
	$(BIN)/python -m pytest -n $(JOBS)

lint: $(VENV)/.installed-lint
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

bench: $(VENV)/.installed-examples
	$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) build dist out *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
