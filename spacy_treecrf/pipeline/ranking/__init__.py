"""What `ner_reranker` learns from, and the learning."""
