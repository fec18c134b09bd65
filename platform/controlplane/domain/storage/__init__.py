"""Storage of teams: usage and quota, and the retention rules by which artifacts are removed.

::

    items ──▶ usage by team and kind ──▶ quota: is there space for more?
      └─────▶ retention rules ──▶ removals
"""
