"""A quantized version beside the one that it was made from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils.translation import gettext as _

from apps.accounts import selectors as accounts
from apps.accounts.web.requests import SignedIn
from apps.jobs import selectors as jobs
from apps.models.selectors.quantizations import (
    Pair,
    Quantization,
    is_quantized,
    quantization_of,
)
from apps.serving.selectors import catalog as selectors
from apps.serving.web.versions import steps_of, tabs_of
from controlplane.domain.permissions import Permission, allows
from controlplane.domain.quantization import Judged
from controlplane.domain.resources import bytes_in_words
from controlplane.web.templatetags.ninefold import figure, words


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the comparison, as it is shown."""

    label: str
    before: str
    after: str
    difference: str
    tolerance: str = "–"
    #: None where nothing is asked of it.
    tolerable: bool | None = None
    hint: str = ""


@login_required
def version_quantization(request: SignedIn, uid: str) -> HttpResponse:
    """What it lost and gained, and whether that was tolerable; 404 for plain weights."""
    version = get_object_or_404(selectors.versions_with_origin(request.user), uid=uid)
    if not is_quantized(version):
        raise Http404(uid)
    maker = None
    if version.job_uid:
        maker = jobs.jobs_visible(request.user).filter(uid=version.job_uid).first()
    tolerance = maker.spec.get("tolerance") if maker else None
    roles = accounts.roles_by_team(request.user).get(version.line.team_id or 0, frozenset())
    found = quantization_of(version, tolerance=tolerance or {})
    context: dict[str, Any] = {
        "version": version,
        "steps": steps_of(request, version),
        "tabs": tabs_of(version, "quantization"),
        "maker": maker,
        "found": found,
        "rows": list(_rows(found)),
        "may_decide": allows(roles, Permission.CONTRIBUTE),
    }
    return render(request, "registry/version_quantization.html", context)


def _rows(found: Quantization) -> Iterator[Row]:
    yield _size(_("size of all weights"), found.size)
    yield _size(
        _("of these, the quantized layers"), found.layers_size, _("scales and zero points included")
    )
    for each in found.judged:
        yield _judged(each)
    if found.speed.before:
        yield Row(
            label=_("answers a second"),
            before=figure(found.speed.before),
            after=figure(found.speed.after),
            difference=_times(found.speed),
            hint=_("where it was made, by plain kernels"),
        )


def _size(label: str, pair: Pair, hint: str = "") -> Row:
    return Row(
        label=label,
        before=bytes_in_words(int(pair.before or 0)),
        after=bytes_in_words(int(pair.after or 0)),
        difference=_times(pair),
        hint=hint,
    )


def _times(pair: Pair) -> str:
    """After as a multiple of before: ``0.48 ×``."""
    return "–" if pair.share is None else f"{pair.share:.3g} ×"


def _judged(each: Judged) -> Row:
    asks = each.tolerance is not None
    return Row(
        label=words(each.metric),
        before=figure(each.before),
        after=figure(each.after),
        difference=_difference(each),
        tolerance=_tolerance(each),
        tolerable=each.tolerable if asks else None,
    )


def _difference(each: Judged) -> str:
    if each.loss is None:
        return "–"
    if each.relative:
        return f"{each.loss:+.2%}"
    return _("%(points)s points") % {"points": f"{-each.loss * 100:+.2f}"}


def _tolerance(each: Judged) -> str:
    if each.tolerance is None:
        return "–"
    if each.relative:
        return f"+{each.tolerance:.2%}"
    return _("%(points)s points") % {"points": f"−{each.tolerance * 100:.2f}"}
