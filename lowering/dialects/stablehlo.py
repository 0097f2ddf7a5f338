"""Marks the ``stablehlo``dialect as loaded: without a module here every op access searches the file system (21-42 us)."""
