"""The obesity study: a random forest, 7 classes."""
