"""Programs that a Launch brings along, as text: they run in an engine's image, beside no package of ours.

Standard library only, and Python 3.10 is enough.
"""
