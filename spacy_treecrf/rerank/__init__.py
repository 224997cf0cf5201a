"""Reranking of N-best entity analyses by global features (Collins 2002).

Shape letters: S segments, C candidates of all segments, K kept features, D distinct
(segment, span, label).
"""
