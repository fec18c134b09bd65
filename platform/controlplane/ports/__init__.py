"""Protocols for every outside system. Adapters register by entry point; see ``registry``."""
