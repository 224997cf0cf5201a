"""The service of docs/serving.md, as it stands there."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import spacy
from table_scorer import scored, table_of
from test_readme import ROOT, blocks

testclient = pytest.importorskip("fastapi.testclient", reason="needs fastapi")

WORDS = "The Bank of China opened an office in Lyon ."
SPANS = [(1, 4, "ORG"), (3, 4, "GPE"), (8, 9, "GPE")]


def test_serving_answers_in_many_threads(monkeypatch):
    nlp = scored(table_of([(WORDS, SPANS)]))
    monkeypatch.setattr(spacy, "load", lambda path: nlp)
    (code,) = blocks(ROOT / "docs" / "serving.md", "python")
    service = {"__name__": "service"}
    exec(compile(code, "serving.md", "exec", dont_inherit=True), service)
    client = testclient.TestClient(service["app"])

    def ask(number):
        return client.post("/entities", json={"texts": [WORDS] * number})

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(ask, [0, 1, 2, 3] * 6))
    for number, answer in zip([0, 1, 2, 3] * 6, answers, strict=True):
        assert answer.status_code == 200
        found = answer.json()
        assert len(found) == number
        for row in found:
            assert [(e["text"], e["label"]) for e in row] == [
                ("Bank of China", "ORG"),
                ("China", "GPE"),
                ("Lyon", "GPE"),
            ]
            assert all(WORDS[e["start"] : e["end"]] == e["text"] for e in row)
            assert all(0 <= e["score"] <= 1 for e in row)
    assert client.post("/entities", json={"texts": "no list"}).status_code == 422
