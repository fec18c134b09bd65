"""The core: pure decisions, ports to the outside, adapters. It knows nothing of ``apps``."""
