"""The op records, a file per family. Importing this package registers them all."""

from xformlib.ops import (  # noqa: F401
    contraction,
    control,
    creation,
    cumulative,
    elementwise,
    indexing,
    movement,
    random,
    reduction,
    scatter,
    sorting,
)
