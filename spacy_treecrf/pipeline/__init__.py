"""The spaCy pipes, one module a factory. Importing a module must not import torch."""
