"""Thinc layers over the Tree CRF; knows Thinc and torch."""
