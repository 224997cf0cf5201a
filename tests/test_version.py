"""The version stands in one place."""

from importlib.metadata import version

import pytest

import spacy_treecrf


def test_version_is_that_of_the_package():
    assert spacy_treecrf.__version__ == version("spacy-treecrf")


def test_version_is_all_that_the_package_has():
    with pytest.raises(AttributeError, match="other"):
        _ = spacy_treecrf.other
