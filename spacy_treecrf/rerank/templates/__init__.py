"""The templates of global features, by what they look at."""
