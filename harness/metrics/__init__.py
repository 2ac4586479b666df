"""Arithmetic on values: no input or output, no ML library. Every formula names its source."""
