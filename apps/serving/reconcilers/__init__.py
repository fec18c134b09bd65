"""The loops of serving."""
