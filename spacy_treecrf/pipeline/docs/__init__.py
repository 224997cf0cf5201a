"""Docs as the pipes see them: segments, gold, what is found in them."""
