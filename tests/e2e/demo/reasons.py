"""Reasons of the sample rows, with the product's own codes: pages show them in both languages."""

from __future__ import annotations

from controlplane.domain.common.reasons import Parameter, Reason
from controlplane.persistence.reasons import ENGLISH, reason_template


def sample_reason(code: str, **params: Parameter) -> Reason:
    """:raises AssertionError: if the product has no such code."""
    template = reason_template(code, locale=ENGLISH)
    assert template is not None, code
    return Reason(code, template, **params)
