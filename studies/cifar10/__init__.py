"""The image study: a VGG, 10 classes."""
