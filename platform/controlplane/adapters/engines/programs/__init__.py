"""Programs and files that a Launch carries as text: they run in an engine's image, without this package.

Standard library only, and Python 3.10 is enough.
"""
