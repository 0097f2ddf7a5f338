"""The transformations: ``jit``, ``grad`` and its family, ``vmap``, and ways to look at programs."""
