"""Datasets that ship with the product, and the programs that made them."""
