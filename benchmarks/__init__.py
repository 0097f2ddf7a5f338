"""Side-by-side timings against NumPy, and JAX where it is installed: ``python -m benchmarks``."""
