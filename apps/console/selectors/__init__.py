"""Queries that read across the apps."""
