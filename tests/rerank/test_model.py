"""Rankers survive as headers and arrays."""

import json
import pickle
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from spacy_treecrf.rerank.boosting import train_boosting
from spacy_treecrf.rerank.model import load_ranker
from spacy_treecrf.rerank.voted_perceptron import train_perceptron

from .random_data import feature_sets, random_data


@pytest.fixture(params=["averaged", "last", "voted", "boosting"])
def ranker(request):
    """A ranker of each kind."""
    data = random_data(3, n_segments=30)
    if request.param == "boosting":
        return train_boosting(data, 5).ranker()
    return getattr(train_perceptron(data), request.param)()


def test_model_ranker_survives_as_header_and_arrays(ranker):
    data = random_data(4)
    header, arrays = ranker.to_arrays()
    loaded = load_ranker(json.loads(json.dumps(header)), arrays)
    assert type(loaded) is type(ranker)
    assert loaded.values(data).tolist() == ranker.values(data).tolist()


def test_model_ranker_survives_a_pickle(ranker):
    data = random_data(4)
    expected = ranker.values(data).tolist()
    assert pickle.loads(pickle.dumps(ranker)).values(data).tolist() == expected


def test_model_ranker_needs_the_features_that_it_uses_only(ranker):
    data = random_data(4)
    used = ranker.used_features()
    extra = used.copy()
    extra[np.flatnonzero(~used)[:1]] = True
    for kept in (used, extra, np.ones_like(used)):
        values = ranker.select(kept).values(select(data, kept))
        assert values.tolist() == ranker.values(data).tolist()


def select(data, kept):
    """Data of some of the features, by the definition."""
    number = {k: new for new, k in enumerate(np.flatnonzero(kept).tolist())}
    sets = [
        sorted(number[k] for k in held & set(number)) for held in feature_sets(data)
    ]
    return replace(
        data,
        indptr=np.cumsum([0, *map(len, sets)]),
        indices=np.array([k for held in sets for k in held], dtype=np.int32),
        n_features=len(number),
    )


@pytest.mark.parametrize("header", [{}, {"method": "oracle"}])
def test_model_refuses_a_method_that_it_does_not_know(header):
    with pytest.raises(ValueError, match="expected a ranker of method"):
        load_ranker(header, {})


def test_model_rankers_predict_with_numpy_alone(tmp_path):
    data = random_data(3, n_segments=30)
    ranker = train_perceptron(data).voted()
    data.to_disk(tmp_path / "data.npz")
    (tmp_path / "ranker.pkl").write_bytes(pickle.dumps(ranker.to_arrays()))
    code = (
        "import pickle, sys\n"
        "for name in ('scipy', 'sklearn', 'tqdm', 'spacy', 'torch', 'thinc'):\n"
        "    sys.modules[name] = None\n"
        "import spacy_treecrf.rerank.boosting\n"
        "from spacy_treecrf.rerank.model import load_ranker\n"
        "from spacy_treecrf.rerank.ranking_data import RankingData\n"
        "ranker = load_ranker(*pickle.load(open('ranker.pkl', 'rb')))\n"
        "print(ranker.choose(RankingData.from_disk('data.npz')).tolist())\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(result.stdout) == ranker.choose(data).tolist()
