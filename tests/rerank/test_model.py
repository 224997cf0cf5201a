"""Rankers survive as headers and arrays."""

import json
import pickle
import subprocess
import sys

import pytest

from spacy_treecrf.rerank.boosting import train_boosting
from spacy_treecrf.rerank.model import load_ranker
from spacy_treecrf.rerank.voted_perceptron import train_perceptron

from .random_data import random_data


@pytest.fixture(params=["averaged", "last", "voted", "boosting"])
def ranker(request):
    """A ranker of each kind."""
    data = random_data(3, n_segments=30)
    if request.param == "boosting":
        return train_boosting(data, 20).ranker()
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
