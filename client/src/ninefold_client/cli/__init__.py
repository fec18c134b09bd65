"""The command ``ninefold``."""
