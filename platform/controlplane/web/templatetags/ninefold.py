"""Template tags and filters of every page; built-in, so templates load nothing."""

from __future__ import annotations

import re
import secrets
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path

from django import template
from django.contrib.staticfiles import finders
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _

from controlplane.domain.common.resources import format_bytes
from controlplane.web.reasons import render_reason
from controlplane.web.state_badges import state_badge

register = template.Library()

_MINUTE, _HOUR, _DAY = 60, 3600, 86400

#: Hidden field that identifies a repeated submission of a form.
IDEMPOTENCY_FIELD = "once"


@register.filter
def filesize(amount: int | None) -> str:
    """``1536`` → ``1.5 KiB``."""
    return format_bytes(amount or 0)


#: How the icons' lines are drawn.
_STROKE = mark_safe(
    'fill="none" stroke="currentColor" stroke-width="2" '
    'stroke-linecap="round" stroke-linejoin="round"'
)


@cache
def _icon_svg(name: str) -> SafeString:
    return format_html(
        '<svg class="icon" aria-hidden="true" focusable="false" width="24" height="24" '
        'viewBox="0 0 24 24" {}>{}</svg>',
        _STROKE,
        _icon_paths(name),
    )


@cache
def _icon_paths(name: str) -> SafeString:
    path = finders.find(f"vendor/icons/{name}.svg")
    if not path:
        raise template.TemplateSyntaxError(
            f"there is no icon {name!r}; add its file to static/vendor/icons"
        )
    source = Path(path).read_text(encoding="utf-8")
    inside = re.search(r"<svg[^>]*>(.*)</svg>", source, re.DOTALL)
    if inside is None:
        raise template.TemplateSyntaxError(f"the file of icon {name!r} is no SVG")
    return mark_safe(" ".join(inside[1].split()))  # noqa: S308 - a vendored file, not input


@register.simple_tag
def icon(name: str) -> SafeString:
    """Return an inline SVG icon, hidden from screen readers: it always has a label beside it.

    :raises TemplateSyntaxError: if no such icon is vendored.
    """
    return _icon_svg(name)


@register.simple_tag
def state(value: str) -> SafeString:
    """Return the badge of a state."""
    badge = state_badge(value)
    return format_html(
        '<span class="badge nf-state bg-{0}-lt" data-state="{1}">{2}<span>{3}</span></span>',
        badge.colour,
        value,
        _icon_svg(badge.icon),
        badge.label,
    )


@register.simple_tag
def state_icon_symbols(*values: str) -> SafeString:
    """The icons of these states, once for a page that shows them by the hundred with ``state_compact``."""
    symbols = format_html_join(
        "",
        '<symbol id="state-{}" viewBox="0 0 24 24" {}>{}</symbol>',
        ((value, _STROKE, _icon_paths(state_badge(value).icon)) for value in values),
    )
    return format_html("<div hidden><svg>{}</svg></div>", symbols)


@register.simple_tag
def state_compact(value: str) -> SafeString:
    """As ``state``, with an icon of ``state_icon_symbols``: a third of its bytes."""
    badge = state_badge(value)
    return format_html(
        '<span class="badge nf-state bg-{}-lt"><svg class="icon" aria-hidden="true">'
        '<use href="#state-{}"/></svg><span>{}</span></span>',
        badge.colour,
        value,
        badge.label,
    )


@register.simple_tag
def chip(name: str, kind: str = "") -> SafeString:
    """A chip's name with its family as word and hue: ``{% chip "ascend-910b3" "npu" %}``."""
    family = f"{kind.upper()} " if kind and not name.lower().startswith(kind) else ""
    return format_html(
        '<span class="nf-chip" data-kind="{0}">{1}<span>{2}{3}</span></span>',
        kind,
        _icon_svg("cpu"),
        family,
        name,
    )


@register.simple_tag
def state_label(value: str) -> str:
    """Return the label of a state without markup."""
    return str(state_badge(value).label)


@register.filter
def duration(amount: float | timedelta | None) -> str:
    """Format seconds with two units at most: ``11520`` → ``3 h 12 min``."""
    if amount is None:
        return "–"
    exact = amount.total_seconds() if isinstance(amount, timedelta) else float(amount)
    seconds = max(0, round(exact))
    if seconds < _MINUTE:
        return _("%(s)d s") % {"s": seconds}
    if seconds < _HOUR:
        minutes, rest = divmod(seconds, _MINUTE)
        humanized = _("%(min)d min %(s)d s") if minutes < 10 and rest else _("%(min)d min")
        return humanized % {"min": minutes, "s": rest}
    if seconds < _DAY:
        hours, minutes = seconds // _HOUR, seconds % _HOUR // _MINUTE
        return (_("%(h)d h %(min)d min") if minutes else _("%(h)d h")) % {
            "h": hours,
            "min": minutes,
        }
    days, hours = seconds // _DAY, seconds % _DAY // _HOUR
    return (_("%(d)d d %(h)d h") if hours else _("%(d)d d")) % {"d": days, "h": hours}


@register.filter
def took(seconds: float | None) -> str:
    """How long something short took: ``0.005484`` → ``5 ms``, ``2.345`` → ``2.3 s``; more as a duration."""
    if seconds is None:
        return "–"
    if (milliseconds := round(seconds * 1000)) < 1000:
        return _("%(ms)d ms") % {"ms": milliseconds}
    return _("%(s).1f s") % {"s": seconds} if seconds < 10 else duration(seconds)


@register.filter
def until(later: datetime | None, earlier: datetime | None) -> str:
    """The time from ``earlier`` to ``later``, or to now where it has not ended."""
    if earlier is None:
        return "–"
    return duration((later or timezone.now()) - earlier)


@register.simple_tag
def ago(at: datetime | None) -> SafeString | str:
    """How far away an instant is, with the instant itself on hover."""
    if at is None:
        return "–"
    distance = (timezone.now() - at).total_seconds()
    return format_html(
        '<time datetime="{}" title="{}">{}</time>',
        at.isoformat(),
        timezone.localtime(at).strftime("%Y-%m-%d %H:%M:%S %Z"),
        _format_distance(distance),
    )


def _format_distance(seconds: float) -> str:
    if -5 < seconds < 5:
        return _("just now")
    amount = duration(_round_distance(abs(seconds)))
    if seconds > 0:
        return _("%(amount)s ago") % {"amount": amount}
    return _("in %(amount)s") % {"amount": amount}


def _round_distance(seconds: float) -> float:
    """Whole hours or days once they matter more than what is left."""
    if seconds >= _DAY:
        return seconds // _DAY * _DAY
    return seconds // _MINUTE * _MINUTE if seconds >= _MINUTE else seconds


@register.filter
def number(value: object) -> str:
    """A measured number with sensible precision: ``0.0123456`` → ``0.01235``; large ones with commas."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "–" if value is None else str(value)
    if isinstance(value, int):
        return f"{value:,}"
    if value and not 0.001 <= abs(value) < 100_000:
        return f"{value:.3g}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


@register.filter
def rounded(count: int | None) -> str:
    """Format a large count with three digits: ``494032768`` → ``494M``, ``7615616512`` → ``7.62B``."""
    if count is None:
        return "–"
    for size, unit in ((10**12, "T"), (10**9, "B"), (10**6, "M"), (10**3, "K")):
        if count >= size:
            return (
                f"{count / size:.3g}{unit}" if count < 1000 * size else f"{count / size:,.0f}{unit}"
            )
    return str(count)


@register.filter
def at_key(mapping: dict[str, object] | None, key: str) -> object:
    """``mapping[key]``, or None where it is absent."""
    return (mapping or {}).get(key)


@register.filter
def minus(value: object, other: object) -> float | None:
    """Return the difference of two numbers, None if one is missing."""
    if isinstance(value, int | float) and isinstance(other, int | float):
        return value - other
    return None


@register.filter
def short(uid: str) -> str:
    """Return the first eight digits of a uid."""
    return uid[:8]


@register.simple_tag
def uid(value: str) -> SafeString:
    """Return a short id in monospace; a click copies the whole one."""
    return format_html(
        '<button type="button" class="nf-uid" data-copy-text="{0}" data-copied="{3}" title="{0}" '
        'aria-label="{2}"><code>{1}</code></button>',
        value,
        short(value),
        _("Copy the ID %(uid)s") % {"uid": value},
        _("Copied"),
    )


@register.simple_tag
def idempotency_token() -> SafeString:
    """Return a hidden field with a token of this rendering, so that a repeated submission is executed once."""
    return format_html(
        '<input type="hidden" name="{}" value="{}">', IDEMPOTENCY_FIELD, secrets.token_hex(16)
    )


@register.filter
def translated(reason: str | None) -> str:
    """Return a reason in the language of the reader: ``{{ job.state_reason|translated }}``."""
    return render_reason(reason or "")


@register.filter
def humanized(code: str) -> str:
    """``label_accuracy`` → ``label accuracy``, in the reader's language where that is known."""
    plain = code.replace("_", " ")
    return _(plain) if plain else plain


@register.simple_tag(takes_context=True)
def query(context: template.Context, **changes: object) -> str:
    """The query string of this page with some parameters changed; empty values drop theirs."""
    parameters = context["request"].GET.copy()
    for name, value in changes.items():
        if value in (None, ""):
            parameters.pop(name, None)
        else:
            parameters[name] = str(value)
    return f"?{parameters.urlencode()}"
