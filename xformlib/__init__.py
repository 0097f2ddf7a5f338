"""xformlib."""
