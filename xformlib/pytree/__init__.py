"""The machinery behind :mod:`xformlib.tree_util`: container kinds, structures, key paths, registration."""
