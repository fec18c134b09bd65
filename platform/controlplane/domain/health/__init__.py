"""The health of the fleet: what is seen (``signals``), what is decided, and what holds a decision back."""
