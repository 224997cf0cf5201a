"""Nested entities for spaCy. Imports nothing, so that `structure` needs torch alone."""


def __getattr__(name: str) -> str:
    """`__version__`, as it was installed: setup.cfg is the one place that says it."""
    if name == "__version__":
        from importlib.metadata import version

        return version("spacy-treecrf")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
