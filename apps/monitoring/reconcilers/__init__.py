"""Loops that take what waits to the outside."""
