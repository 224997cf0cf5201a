"""Readers of corpora, a module a format; each yields `Sentence`s."""
