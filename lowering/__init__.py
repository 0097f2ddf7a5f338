"""Lowering: StableHLO modules in, IREE executables out. Knows MLIR and IREE's compiler, not arrays."""
