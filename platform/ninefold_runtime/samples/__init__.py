"""A dataset that ships with the product, and tiny models."""
