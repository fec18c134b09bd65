"""Tags and filters of every page; built in, so templates load nothing."""

from __future__ import annotations

from django import template

from controlplane.domain.resources import bytes_in_words

register = template.Library()


@register.filter
def filesize(amount: int | None) -> str:
    """``1536`` → ``1.5 KiB``."""
    return bytes_in_words(amount or 0)
