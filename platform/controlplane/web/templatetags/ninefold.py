"""Tags and filters of every page; built in, so templates load nothing."""

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

from controlplane.domain.resources import bytes_in_words
from controlplane.web.sentences import said
from controlplane.web.states import look_of

register = template.Library()

_MINUTE, _HOUR, _DAY = 60, 3600, 86400

#: The hidden field by which a form that comes twice is recognised.
ONCE_FIELD = "once"


@register.filter
def filesize(amount: int | None) -> str:
    """``1536`` → ``1.5 KiB``."""
    return bytes_in_words(amount or 0)


#: How the icons' lines are drawn.
_STROKE = mark_safe(
    'fill="none" stroke="currentColor" stroke-width="2" '
    'stroke-linecap="round" stroke-linejoin="round"'
)


@cache
def _drawing(name: str) -> SafeString:
    return format_html(
        '<svg class="icon" aria-hidden="true" focusable="false" width="24" height="24" '
        'viewBox="0 0 24 24" {}>{}</svg>',
        _STROKE,
        _lines(name),
    )


@cache
def _lines(name: str) -> SafeString:
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
    """The drawing itself, hidden from screen readers: a word always stands beside it.

    :raises TemplateSyntaxError: if no such icon is vendored.
    """
    return _drawing(name)


@register.simple_tag
def state(value: str) -> SafeString:
    """Icon, word and colour of a state."""
    look = look_of(value)
    return format_html(
        '<span class="badge nf-state bg-{0}-lt" data-state="{1}">{2}<span>{3}</span></span>',
        look.colour,
        value,
        _drawing(look.icon),
        look.word,
    )


@register.simple_tag
def state_drawings(*values: str) -> SafeString:
    """The icons of these states, once for a page that shows them by the hundred with ``state_drawn``."""
    symbols = format_html_join(
        "",
        '<symbol id="state-{}" viewBox="0 0 24 24" {}>{}</symbol>',
        ((value, _STROKE, _lines(look_of(value).icon)) for value in values),
    )
    return format_html("<div hidden><svg>{}</svg></div>", symbols)


@register.simple_tag
def state_drawn(value: str) -> SafeString:
    """As ``state``, with an icon of ``state_drawings``: a third of its bytes."""
    look = look_of(value)
    return format_html(
        '<span class="badge nf-state bg-{}-lt"><svg class="icon" aria-hidden="true">'
        '<use href="#state-{}"/></svg><span>{}</span></span>',
        look.colour,
        value,
        look.word,
    )


@register.simple_tag
def chip(name: str, kind: str = "") -> SafeString:
    """A chip's name with its family as word and hue: ``{% chip "ascend-910b3" "npu" %}``."""
    family = f"{kind.upper()} " if kind and not name.lower().startswith(kind) else ""
    return format_html(
        '<span class="nf-chip" data-kind="{0}">{1}<span>{2}{3}</span></span>',
        kind,
        _drawing("cpu"),
        family,
        name,
    )


@register.simple_tag
def state_word(value: str) -> str:
    """The word alone, for where no markup may stand."""
    return str(look_of(value).word)


@register.filter
def duration(amount: float | timedelta | None) -> str:
    """Seconds in words, two units at most: ``11520`` → ``3 h 12 min``."""
    if amount is None:
        return "–"
    exact = amount.total_seconds() if isinstance(amount, timedelta) else float(amount)
    seconds = max(0, round(exact))
    if seconds < _MINUTE:
        return _("%(s)d s") % {"s": seconds}
    if seconds < _HOUR:
        minutes, rest = divmod(seconds, _MINUTE)
        words = _("%(min)d min %(s)d s") if minutes < 10 and rest else _("%(min)d min")
        return words % {"min": minutes, "s": rest}
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
        _relative(distance),
    )


def _relative(seconds: float) -> str:
    if -5 < seconds < 5:
        return _("just now")
    amount = duration(_coarse(abs(seconds)))
    if seconds > 0:
        return _("%(amount)s ago") % {"amount": amount}
    return _("in %(amount)s") % {"amount": amount}


def _coarse(seconds: float) -> float:
    """Whole hours or days once they matter more than what is left."""
    if seconds >= _DAY:
        return seconds // _DAY * _DAY
    return seconds // _MINUTE * _MINUTE if seconds >= _MINUTE else seconds


@register.filter
def figure(value: object) -> str:
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
    """A large count as people say it, three digits: ``494032768`` → ``494M``, ``7615616512`` → ``7.62B``."""
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
    """The difference of two figures, None where one is missing."""
    if isinstance(value, int | float) and isinstance(other, int | float):
        return value - other
    return None


@register.filter
def short(uid: str) -> str:
    """The first eight digits of a uid, enough to tell rows apart on one page."""
    return uid[:8]


@register.simple_tag
def uid(value: str) -> SafeString:
    """A short id in monospace; a press copies the whole one, which is also its title."""
    return format_html(
        '<button type="button" class="nf-uid" data-copy-text="{0}" data-copied="{3}" title="{0}" '
        'aria-label="{2}"><code>{1}</code></button>',
        value,
        short(value),
        _("Copy the id %(uid)s") % {"uid": value},
        _("Copied"),
    )


@register.simple_tag
def once() -> SafeString:
    """A token of this rendering of a form, so that sending it twice does its work once."""
    return format_html(
        '<input type="hidden" name="{}" value="{}">', ONCE_FIELD, secrets.token_hex(16)
    )


@register.filter
def told(reason: str | None) -> str:
    """What a service or a rule said, in the reader's language: ``{{ job.state_reason|told }}``."""
    return said(reason or "")


@register.filter
def words(code: str) -> str:
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
