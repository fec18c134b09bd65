"""HTMX and REST pieces that every app uses."""
