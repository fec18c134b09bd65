"""Preview, confirmation and history of changes to the queue tree.

Every change is previewed before it is saved: its differences, the queues that gain, the claims that would be
reclaimed. The user adds a note, and types a confirmation if workloads would be stopped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import Q
from django.forms import BaseForm
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from apps.accounts.models import User
from apps.accounts.selectors import PermissionRefused
from apps.quotas.admin.queue_forms import QueueChangeSaveForm
from apps.quotas.models import Queue, QueueChange
from apps.quotas.selectors import queue_trees as selectors
from apps.quotas.selectors.simulations import PreemptedWorkload
from apps.quotas.services import queue_trees
from apps.quotas.services.queue_trees import (
    QueueChangePreview,
    QueueTreeConflict,
    queue_change_revert_edit,
)
from controlplane.domain.common.spec_fields import FieldFinding
from controlplane.domain.quotas.queue_documents import (
    POLICIES,
    DifferenceKind,
    QueueDifference,
    TreeEdit,
)
from controlplane.domain.scheduling.queue_change_preview import QueueCapacityChange
from controlplane.web.reasons import render_reason
from controlplane.web.state_badges import state_badge


@dataclass(frozen=True, slots=True, kw_only=True)
class DisplayedDifference:
    """One difference between two trees, formatted for display."""

    message: str
    before: str = ""
    after: str = ""
    #: Whether to show the values beside the message.
    shows_values: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FormError:
    #: HTML id of the field, for a link.
    field: str
    label: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueChangeReview:
    """The effects of a proposed change, formatted for display; empty before the first preview."""

    preview: QueueChangePreview | None = None
    #: A form is invalid, so no preview could be made.
    incomplete: bool = False
    form_errors: tuple[FormError, ...] = ()
    #: Why the user is not permitted to make the change; empty if permitted.
    forbidden: str = ""
    #: Text to type before workloads are stopped; empty if none are.
    confirmation: str = ""
    #: Label of the button; empty for the default.
    verb: str = ""

    @property
    def refusals(self) -> list[str]:
        forbidden = self.forbidden.split("; ") if self.forbidden else []
        return forbidden + (_finding_messages(self.preview.findings) if self.preview else [])

    @property
    def warnings(self) -> list[str]:
        return _finding_messages(self.preview.warnings) if self.preview else []

    @property
    def differences(self) -> list[DisplayedDifference]:
        return format_queue_differences(self.preview.differences) if self.preview else []

    @property
    def gains(self) -> tuple[QueueCapacityChange, ...]:
        return self.preview.gains if self.preview else ()

    @property
    def reclaims(self) -> tuple[PreemptedWorkload, ...]:
        return self.preview.reclaims if self.preview else ()

    @property
    def blocked(self) -> bool:
        """Whether saving would be refused, or would change nothing."""
        return (
            self.incomplete
            or bool(self.forbidden)
            or bool(self.preview and (self.preview.findings or not self.preview.differences))
        )

    @property
    def summary(self) -> str:
        """One sentence that sums up the change."""
        if self.incomplete:
            return _("Some fields are not valid.")
        if self.forbidden:
            return _("You do not have the permission to change this field.")
        if self.preview is None:
            return _("The effects of your changes are previewed here before you save.")
        if self.preview.findings:
            return _("The changes cannot be saved because they are not valid.")
        if not self.preview.differences:
            return _("No changes of the queues.")
        count = len(self.preview.differences)
        values = ngettext("%(count)d change", "%(count)d changes", count) % {"count": count}
        return _("%(told)s. %(consequence)s") % {
            "told": values,
            "consequence": self._describe_consequence()
            or _("The change does not start or stop any resource claims."),
        }

    @property
    def label(self) -> str:
        """Label of the save button, with the consequence of saving."""
        verb = self.verb or _("Save")
        consequence = "" if self.blocked else self._describe_consequence()
        return (
            _("%(verb)s: %(what)s") % {"verb": verb, "what": consequence} if consequence else verb
        )

    def _describe_consequence(self) -> str:
        if self.reclaims:
            return _eviction_summary(self.reclaims)
        starting = len({claim for gain in self.gains for claim in gain.starting})
        if not starting:
            return ""
        return ngettext(
            "%(count)d pending claim starts", "%(count)d pending claims start", starting
        ) % {"count": starting}


def _eviction_summary(reclaims: tuple[PreemptedWorkload, ...]) -> str:
    teams = sorted({reclaim.work.team for reclaim in reclaims})
    count = len(reclaims)
    if len(teams) == 1:
        return ngettext(
            "%(count)d claim of %(team)s will be evicted",
            "%(count)d claims of %(team)s will be evicted",
            count,
        ) % {"count": count, "team": teams[0]}
    return ngettext(
        "%(count)d claim will be evicted", "%(count)d claims will be evicted", count
    ) % {"count": count}


def _finding_messages(findings: tuple[FieldFinding, ...]) -> list[str]:
    return [finding.message for finding in findings]


def format_queue_differences(differences: tuple[QueueDifference, ...]) -> list[DisplayedDifference]:
    return [
        DisplayedDifference(
            message=one.message,
            before=_format_value(one.field, one.before),
            after=_format_value(one.field, one.after),
            shows_values=one.kind is DifferenceKind.CHANGED and one.field != "description",
        )
        for one in differences
    ]


def _format_value(name: str, value: str) -> str:
    if name in POLICIES:
        return _("yes") if value == "yes" else _("no")
    return str(state_badge(value).label) if name == "state" and value else value


# -- Shared by all pages that change the tree --


@dataclass(slots=True, kw_only=True)
class ProposedQueueChange:
    """A change that a user is editing, before it is saved."""

    #: None while a form is invalid.
    edit: TreeEdit | None
    saving: QueueChangeSaveForm = field(init=False)
    #: The forms of the page.
    forms: Sequence[BaseForm]
    #: Confirmation text, if workloads would be stopped.
    confirmation_text: str = "stop"
    #: Message after saving.
    done: str
    #: Name of the page to redirect to after saving.
    back: str = "changelist"
    #: Label of the button in place of "Save".
    verb: str = ""
    #: Preview on GET too.
    preview_on_get: bool = False
    #: The change to revert; None for a new change.
    reverts: QueueChange | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueChangeEntry:
    """A saved change with its differences, for a list."""

    change: QueueChange
    differences: list[DisplayedDifference] = field(default_factory=list)

    @property
    def more(self) -> int:
        """The number of differences beyond the three that a list shows."""
        return len(self.differences) - 3


def queue_change_entries(changes: Iterable[QueueChange]) -> list[QueueChangeEntry]:
    """Saved changes with the differences that they made."""
    names = selectors.queue_names()
    return [
        QueueChangeEntry(
            change=change,
            differences=format_queue_differences(
                selectors.visible_change_differences(change, names=names)
            ),
        )
        for change in changes
    ]


def queue_change_save_form(data: Any = None) -> QueueChangeSaveForm:
    """The form to save a change; an unbound one holds the fingerprint of the current tree."""
    newest = QueueChange.objects.values_list("uid", flat=True).first()
    initial = {"seen": selectors.current_tree_fingerprint(), "since": newest or ""}
    return QueueChangeSaveForm(data, initial=initial)


def queue_change_review_response(
    request: HttpRequest,
    proposal: ProposedQueueChange,
    *,
    template: str,
    context: Mapping[str, Any],
) -> HttpResponse:
    """Save the change, or render its preview: the page, or only the preview fragment for htmx."""
    user = signed_in_user(request)
    proposal.saving = queue_change_save_form(request.POST or None)
    previewed = request.method == "POST" or proposal.preview_on_get
    review = _review_change(proposal, user) if previewed else QueueChangeReview(verb=proposal.verb)
    # None: no concurrent change.
    concurrent_changes: list[QueueChangeEntry] | None = None
    edit = proposal.edit
    if "save" in request.POST and edit is not None and proposal.saving.is_valid():
        try:
            if _is_queue_change_confirmed(proposal, review):
                _save_queue_change(proposal, edit, user)
                messages.success(request, proposal.done)
                return redirect(f"admin:quotas_queue_{proposal.back}")
        except queue_trees.QueueTreeConflict:
            concurrent_changes = _concurrent_changes(proposal, user)
            proposal.saving = _with_current_tree_fingerprint(proposal.saving)
        except (queue_trees.QueueTreeRefused, PermissionRefused) as refusal:
            proposal.saving.add_error(None, render_reason(str(refusal)))
    shown = {
        **context,
        "review": review,
        "saving": proposal.saving,
        "concurrent_changes": concurrent_changes,
    }
    if request.headers.get("HX-Request"):
        return render(request, "admin/quotas/preview_update.html", {**shown, "swapped": True})
    return render(request, template, shown)


def _review_change(proposal: ProposedQueueChange, user: User) -> QueueChangeReview:
    if proposal.edit is None:
        form_errors = tuple(
            form_error for form in proposal.forms for form_error in _form_errors(form)
        )
        return QueueChangeReview(incomplete=True, form_errors=form_errors, verb=proposal.verb)
    try:
        preview = queue_trees.queue_tree_preview(proposal.edit, at=timezone.now(), user=user)
    except PermissionRefused as refusal:
        return QueueChangeReview(forbidden=str(refusal), verb=proposal.verb)
    confirmation = proposal.confirmation_text if preview.reclaims else ""
    return QueueChangeReview(preview=preview, confirmation=confirmation, verb=proposal.verb)


def _form_errors(form: BaseForm) -> Iterator[FormError]:
    for bound in form:
        for error in bound.errors:
            yield FormError(field=bound.id_for_label, label=str(bound.label), message=str(error))


def _is_queue_change_confirmed(proposal: ProposedQueueChange, review: QueueChangeReview) -> bool:
    typed = proposal.saving.cleaned_data["confirm"].strip()
    if not review.confirmation or typed == review.confirmation:
        return True
    message = _("The change evicts running workloads. Type %(word)s to confirm.")
    proposal.saving.add_error("confirm", message % {"word": review.confirmation})
    return False


def _save_queue_change(proposal: ProposedQueueChange, edit: TreeEdit, user: User) -> None:
    values = proposal.saving.cleaned_data
    at = timezone.now()
    if proposal.reverts is not None:
        queue_trees.queue_change_revert(proposal.reverts, actor=user, at=at, note=values["note"])
    else:
        final_edit = replace(edit, note=values["note"], seen=values["seen"])
        queue_trees.queue_tree_apply(final_edit, actor=user, at=at)


def _concurrent_changes(proposal: ProposedQueueChange, user: User) -> list[QueueChangeEntry]:
    """Changes that were saved since the user opened the page."""
    since = QueueChange.objects.filter(uid=proposal.saving.cleaned_data["since"]).first()
    rows = selectors.queue_changes_visible(user)
    if since is not None:
        rows = rows.filter(pk__gt=since.pk)
    return queue_change_entries(rows[:10])


def _with_current_tree_fingerprint(saving: QueueChangeSaveForm) -> QueueChangeSaveForm:
    """The form with the user's input and the fingerprint of the current tree."""
    typed = {name: saving.data.get(name, "") for name in saving.fields}
    return QueueChangeSaveForm({**typed, **queue_change_save_form().initial, "confirm": ""})


def signed_in_user(request: HttpRequest) -> User:
    """:raises PermissionRefused: if no user is signed in; the admin site checks that before."""
    if isinstance(request.user, User):
        return request.user
    raise PermissionRefused("sign in to change rows")


_PAGE = 25


def list_queue_changes(
    request: HttpRequest, context: dict[str, Any], *, queue: Queue | None = None
) -> HttpResponse:
    """Changes of one queue, or of all queues that the user manages, newest first."""
    rows = selectors.queue_changes_visible(request.user)
    if queue is not None:
        rows = rows.filter(Q(before__has_key=queue.uid) | Q(after__has_key=queue.uid))
    page = Paginator(rows, _PAGE).get_page(request.GET.get("page"))
    changes = queue_change_entries(page)
    shown = {**context, "changes": changes, "page": page, "queue": queue}
    return render(request, "admin/quotas/history.html", shown)


def show_queue_change(request: HttpRequest, context: dict[str, Any], *, uid: str) -> HttpResponse:
    """One change field by field, and a preview of reverting it."""
    change = selectors.queue_changes_visible(request.user).filter(uid=uid).first()
    if change is None:
        raise Http404
    (entry,) = queue_change_entries([change])
    shown = {
        **context,
        "change": change,
        "differences": entry.differences,
        "reverted_by": change.reverted_by.first(),
    }
    try:
        edit = queue_change_revert_edit(change)
    except QueueTreeConflict as conflict:
        left = format_queue_differences(conflict.differences)
        return render(
            request, "admin/quotas/change_detail.html", {**shown, "rows_changed_since": left}
        )
    proposal = ProposedQueueChange(
        edit=edit,
        forms=(),
        done=_("The change was reverted."),
        back="changes",
        verb=_("Revert change"),
        preview_on_get=True,
        reverts=change,
    )
    return queue_change_review_response(
        request, proposal, template="admin/quotas/change_detail.html", context=shown
    )
