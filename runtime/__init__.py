"""Runtime: devices, buffers and executables. Needs numpy, ml_dtypes and iree-base-runtime only."""
