"""HTMX and REST components that every app uses."""
