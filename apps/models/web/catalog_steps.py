"""What can be done with an entry of the catalog, and why not where it cannot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy

from apps.accounts import selectors as accounts
from apps.models.models import ModelVersion
from apps.models.selectors import catalog_matrix
from controlplane.domain.catalog import CatalogTask, Entry
from controlplane.domain.common.permissions import Permission, allows
from controlplane.domain.models import ModelState


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A button."""

    label: str | Promise
    icon: str
    #: Empty where it cannot be pressed.
    href: str
    #: Why not; empty where it can.
    reason: str


_LABELS: Mapping[CatalogTask, tuple[str | Promise, str, str, Permission]] = {
    CatalogTask.TRAIN: (lazy("Fine-tune"), "adjustments", "job-new-finetune", Permission.RUN),
    CatalogTask.QUANTIZE: (lazy("Quantize"), "scale", "job-new-quantize", Permission.RUN),
    CatalogTask.SERVE: (lazy("Deploy"), "rocket", "deployment-new", Permission.DEPLOY),
}


def steps(
    entry: Entry, *, versions: Sequence[ModelVersion], user: accounts.RequestUser
) -> list[Step]:
    """Fine-tune, quantize, deploy. ``versions`` are those of the entry that they may see, the newest first."""
    held = accounts.roles_by_team(user)
    granted = {
        permission
        for permission in Permission
        if any(allows(roles, permission) for roles in held.values())
    }
    return [_step(entry, task, versions=versions, granted=granted) for task in _LABELS]


def import_href(entry: Entry) -> str:
    """Where its weights are brought from: its repository on a hub, otherwise a folder."""
    if entry.hf_repo:
        hub, repository = "huggingface", entry.hf_repo
    elif entry.modelscope_id:
        hub, repository = "modelscope", entry.modelscope_id
    else:
        return reverse("model-import")
    return f"{reverse('model-fetch')}?{urlencode({'hub': hub, 'repository': repository})}"


def _step(
    entry: Entry,
    task: CatalogTask,
    *,
    versions: Sequence[ModelVersion],
    granted: set[Permission],
) -> Step:
    label, icon, url_name, permission = _LABELS[task]
    ready = [version for version in versions if _usable(version, task)]
    reason = _no_engine(entry, task)
    if not reason and permission not in granted:
        reason = _("Your roles let you look; an administrator of a team can change that.")
    if not reason and not ready:
        reason = _no_weights(versions, task)
    href = "" if reason else f"{reverse(url_name)}?{urlencode({'model': ready[0].uid})}"
    return Step(label=label, icon=icon, href=href, reason=reason)


def _usable(version: ModelVersion, task: CatalogTask) -> bool:
    """Its files are here; what is quantized already is only deployed."""
    plain = not version.scheme or task is CatalogTask.SERVE
    return version.state == ModelState.READY and plain


def _no_weights(versions: Sequence[ModelVersion], task: CatalogTask) -> str:
    if any(version.state == ModelState.IMPORTING for version in versions):
        return _("Its weights are being imported.")
    if any(version.state == ModelState.READY for version in versions):
        return _("All versions of it here are quantized already; import its plain weights first.")
    return _("Import its weights first.")


def _no_engine(entry: Entry, task: CatalogTask) -> str:
    """Why no engine of this installation can be asked for it; empty if one can."""
    if catalog_matrix.renderable_somewhere(entry, task):
        return ""
    named = sorted({catalog_matrix.engine_title(cell.engine) for cell in entry.claims(task)})
    if named:
        return _("Ninefold does not render it for any engine yet; the sources name %(named)s.") % {
            "named": str(_(", ")).join(named)
        }
    return _("No source names an engine that does it.")
