"""The passes: each walks a finished program and, by each op's rule, emits new ops into whatever is open now."""
