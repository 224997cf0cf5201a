"""Models that were saved before entity sets travelled as `Analyses` do what they did."""

import importlib.util
import json
from pathlib import Path

import pytest
import spacy

SAMPLES = Path(__file__).parents[1] / "samples"
spec = importlib.util.spec_from_file_location("maker", SAMPLES / "make_saved_model.py")
maker = importlib.util.module_from_spec(spec)
spec.loader.exec_module(maker)


@pytest.mark.parametrize("name", maker.MODELS)
def test_saved_models_find_what_they_found(name):
    nlp = spacy.load(SAMPLES / "saved_models" / name, exclude=["tokenizer"])
    text = (SAMPLES / "saved_models" / f"{name}.json").read_text(encoding="utf8")
    now, before = maker.found(nlp, name), json.loads(text)
    for doc, other in zip(now, before, strict=True):
        assert doc["ents"] == other["ents"]
        assert set(doc["groups"]) == set(other["groups"])
        for key, group in other["groups"].items():
            for attribute, values in group.items():
                here = doc["groups"][key][attribute]
                if attribute in ("scores", "log_prob", "entropy"):
                    assert here == pytest.approx(values, rel=1e-4, abs=1e-4)
                else:
                    assert here == values
