"""Compact JSON for the request path."""

from __future__ import annotations

import json

# json.dumps builds an encoder at each call that passes an option; this one is kept. What it encodes
# was decoded before and so has no cycles. Escapes stay on: lone surrogates have no UTF-8.
_ENCODER = json.JSONEncoder(separators=(",", ":"), check_circular=False)


def compact_json(content: object) -> bytes:
    """The JSON of an acyclic value, in ASCII."""
    return _ENCODER.encode(content).encode("ascii")
