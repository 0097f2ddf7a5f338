"""Training a multi-layer perceptron on handwritten digits."""
