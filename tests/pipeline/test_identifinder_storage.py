"""The identifinder pipe: storage, processes, training through spaCy."""

import pytest
import spacy
from flat_toy import (
    trained,
)


def test_identifinder_refuses_a_model_of_other_features():
    data = trained().get_pipe("identifinder").to_bytes()
    features = {
        "@misc": "spacy-treecrf.identifinder_features.v1",
        "feature_set": "five",
    }
    pipe = spacy.blank("en").add_pipe("identifinder", config={"features": features})
    with pytest.raises(ValueError, match=r"T073.*trained with"):
        pipe.from_bytes(data)
