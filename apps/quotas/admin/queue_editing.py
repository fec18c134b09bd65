"""Pages that edit queues: create, edit, move, set state, retire, and bulk edit."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from apps.accounts.models import Team
from apps.fleet.models import Card
from apps.fleet.selectors import fleet_chips
from apps.quotas.admin.queue_changes import (
    ProposedQueueChange,
    queue_change_review_response,
)
from apps.quotas.admin.queue_forms import (
    EntitlementForm,
    EntitlementTable,
    QueueFieldForm,
    QueueForm,
    QueueStateAndWeightForm,
    form_field_of_queue_field,
)
from apps.quotas.models import Queue
from apps.quotas.selectors import queue_trees
from controlplane.domain.quotas.permissions import (
    QueuePermissions,
    administrator_only_fields,
    is_assigned_queue,
    may_add_child_queue,
    may_change_queue,
)
from controlplane.domain.quotas.queue_documents import (
    QUEUE_FIELDS,
    Documents,
    QueueDocument,
    TreeAction,
    TreeEdit,
    ancestor_uids,
    queue_path,
    single_queue_edit,
)
from controlplane.domain.quotas.queues import QUOTA_FIELDS, TOTAL
from controlplane.ports import adapter_registry
from controlplane.web.forms import StyledForm


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueEditingContext:
    """The tree in which a queue is edited, and the rights of the user."""

    documents: Documents
    rights: QueuePermissions
    #: The saved queue; None for a new one.
    saved: QueueDocument | None

    @property
    def assigned(self) -> bool:
        """Whether it is a topmost queue of the user's teams, assigned by a company administrator."""
        saved = self.saved
        return saved is not None and is_assigned_queue(saved.uid, self.documents, self.rights)

    @property
    def fixed(self) -> Collection[str]:
        """Form fields that the user cannot change."""
        return administrator_only_fields(self.saved) if self.assigned and self.saved else ()

    def parents(self) -> Iterator[tuple[str, str]]:
        """Possible parent queues: never the queue itself or one below it."""
        if self.rights.everything or self.assigned:
            yield "", _("at the top")
        for uid, document in sorted(
            self.documents.items(), key=lambda item: queue_path(item[0], self.documents)
        ):
            above = ancestor_uids(uid, self.documents)
            if self.saved is not None and self.saved.uid in above:
                continue
            standing = self.saved is not None and uid == self.saved.parent
            if standing or may_add_child_queue(uid, self.documents, self.rights):
                yield document.uid, queue_path(uid, self.documents)

    def teams(self) -> Iterator[tuple[str, str]]:
        if self.rights.everything or (self.saved is not None and not self.saved.team):
            yield "", _("all teams")
        rows = Team.objects.order_by("name").values_list("slug", "name")
        for slug, name in rows:
            if self.rights.everything or slug in self.rights.teams:
                yield slug, name


def edit_queue(request: HttpRequest, context: dict[str, Any], queue: Queue | None) -> HttpResponse:
    """Edit a queue, or create one if there is none; ``?below=`` is the uid of the parent of a new one."""
    documents = queue_trees.queue_tree_documents()
    saved = documents[queue.uid] if queue else None
    draft = QueueEditingContext(
        documents=documents, rights=queue_trees.queue_tree_permissions(request.user), saved=saved
    )
    data = request.POST or None
    form = QueueForm(
        data,
        initial=QueueForm.initial_values_of_job(saved)
        if saved
        else _new_queue_initial(request, documents),
        parents=tuple(draft.parents()),
        teams=tuple(draft.teams()),
        fixed=draft.fixed,
    )
    configured = saved.entitlements if saved else {}
    cards = EntitlementTable(
        configured, _table_chips(request, documents), data=data, fixed=draft.assigned
    )
    proposal = ProposedQueueChange(
        edit=_tree_edit_of_queue_form(form, cards, saved),
        forms=(form, *cards.rows),
        confirmation_text=saved.name if saved else form.data.get("name", ""),
        done=_("Queue %(queue)s saved.") % {"queue": form["name"].value()},
    )
    shown = {
        **context,
        "form": form,
        "cards": cards,
        "draft": draft,
        "queue": queue,
        "more_chips": [
            known.chip.name
            for known in fleet_chips()
            if not known.chip.slice_of and known.chip.name not in cards.chips
        ],
        "added_chip": request.POST.get("another") if "add_chip" in request.POST else None,
    }
    return queue_change_review_response(
        request, proposal, template="admin/quotas/edit.html", context=shown
    )


def _new_queue_initial(request: HttpRequest, documents: Documents) -> dict[str, Any]:
    """Initial values of a new queue: it belongs to the team of its parent."""
    above = documents.get(request.GET.get("below", ""))
    return {"parent": above.uid, "team": above.team} if above else {}


def _table_chips(request: HttpRequest, documents: Documents) -> Sequence[str]:
    """Rows of the table: chips of the fleet, then of other queues' entitlements, then those that were added."""
    known = adapter_registry.all_chips()
    requested = [*request.POST.getlist("chips"), request.POST.get("another", "")]
    return [*_known_chips(documents), *(chip for chip in requested if chip in known)]


def _known_chips(documents: Documents) -> Iterable[str]:
    """Chips of the fleet, then those of entitlements."""
    fleet = Card.objects.order_by("chip").values_list("chip", flat=True).distinct()
    configured = {chip for document in documents.values() for chip in document.entitlements if chip}
    return dict.fromkeys((*fleet, *sorted(configured)))


def _tree_edit_of_queue_form(
    form: QueueForm, cards: EntitlementTable, saved: QueueDocument | None
) -> TreeEdit | None:
    # Validate both, so that each shows its errors.
    valid = form.is_valid(), cards.is_valid()
    if not all(valid):
        return None
    return single_queue_edit(form.document(cards.entitlements), saved=saved)


class QueueMoveForm(QueueFieldForm):
    declared = (QUEUE_FIELDS["parent"],)


class QueueStateForm(StyledForm):
    to = form_field_of_queue_field(QUEUE_FIELDS["state"])


def move_queue(request: HttpRequest, context: dict[str, Any], queue: Queue) -> HttpResponse:
    documents = queue_trees.queue_tree_documents()
    document = documents[queue.uid]
    draft = QueueEditingContext(
        documents=documents, rights=queue_trees.queue_tree_permissions(request.user), saved=document
    )
    form = QueueMoveForm(request.POST or None, initial={"parent": document.parent})
    form.choice("parent").choices = tuple(draft.parents())
    form.fields["parent"].help_text = _("Child queues of the queue are moved with it.")
    edit = None
    if form.is_bound and form.is_valid():
        changed = replace(document, parent=form.cleaned_data["parent"])
        edit = single_queue_edit(changed, saved=document)
    return _queue_action_response(
        request, context, queue, edit=edit, form=form, verb=_("Move queue")
    )


def set_queue_state(request: HttpRequest, context: dict[str, Any], queue: Queue) -> HttpResponse:
    """Set the state of a queue; ``?to=`` is the new state."""
    form = QueueStateForm(request.POST or {"to": request.GET.get("to", queue.state)})
    edit = None
    if form.is_valid():
        document = queue_trees.queue_document(queue)
        changed = replace(document, state=form.cleaned_data["to"])
        edit = single_queue_edit(changed, saved=document)
    return _queue_action_response(
        request,
        context,
        queue,
        edit=edit,
        form=form,
        verb=_("Change queue state"),
        preview_on_get=True,
    )


def retire_queue(request: HttpRequest, context: dict[str, Any], queue: Queue) -> HttpResponse:
    edit = TreeEdit(queues={queue.uid: None}, action=TreeAction.RETIRE)
    return _queue_action_response(
        request,
        context,
        queue,
        edit=edit,
        form=None,
        verb=pgettext("queue", "Retire"),
        preview_on_get=True,
    )


def _queue_action_response(
    request: HttpRequest,
    context: dict[str, Any],
    queue: Queue,
    *,
    edit: TreeEdit | None,
    form: StyledForm | None,
    verb: str,
    preview_on_get: bool = False,
) -> HttpResponse:
    proposal = ProposedQueueChange(
        edit=edit,
        forms=() if form is None else (form,),
        confirmation_text=queue.name,
        done=_("Queue %(queue)s saved.") % {"queue": queue.name}
        if form is not None
        else _("Queue %(queue)s is retired; its history is kept.") % {"queue": queue.name},
        verb=verb,
        preview_on_get=preview_on_get,
    )
    shown = {**context, "form": form, "queue": queue, "heading": verb}
    return queue_change_review_response(
        request, proposal, template="admin/quotas/queue_action.html", context=shown
    )


#: In place of a chip: edit state and weight.
_STATE_AND_WEIGHT = "fields"


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkEditRow:
    document: QueueDocument
    path: str
    chosen: bool
    #: None if the queue is not selected.
    form: EntitlementForm | QueueStateAndWeightForm | None = None


def bulk_edit_queues(request: HttpRequest, context: dict[str, Any]) -> HttpResponse:
    """Edit many queues; ``?uid=`` (repeated) are the queues, ``?of=`` is the chip, or state and weight."""
    documents, rights = (
        queue_trees.queue_tree_documents(),
        queue_trees.queue_tree_permissions(request.user),
    )
    dimension = request.GET.get("of", _STATE_AND_WEIGHT)
    chosen = set(request.GET.getlist("uid"))
    editable = {
        uid: document
        for uid, document in documents.items()
        if may_change_queue(uid, documents, rights)
    }
    grid_rows = [
        BulkEditRow(
            document=document,
            path=queue_path(uid, documents),
            chosen=uid in chosen,
            form=_bulk_form(
                request, document, dimension, assigned=is_assigned_queue(uid, documents, rights)
            )
            if uid in chosen
            else None,
        )
        for uid, document in sorted(
            editable.items(), key=lambda item: queue_path(item[0], documents)
        )
    ]
    edited = [grid_row for grid_row in grid_rows if grid_row.form is not None]
    shown = {
        **context,
        "grid_rows": grid_rows,
        "edited": edited,
        "dimension": dimension,
        "dimensions": _quota_dimensions(documents),
    }
    proposal = ProposedQueueChange(
        edit=_bulk_edit(grid_rows),
        forms=[grid_row.form for grid_row in edited if grid_row.form is not None],
        done=_("Queues saved."),
    )
    return queue_change_review_response(
        request, proposal, template="admin/quotas/bulk.html", context=shown
    )


def _quota_dimensions(documents: Documents) -> list[tuple[str, str]]:
    return [
        (_STATE_AND_WEIGHT, _("Queue state and weight")),
        *((f"chip:{chip}", chip) for chip in _known_chips(documents)),
        (f"chip:{TOTAL}", _("All chips")),
    ]


def _bulk_form(
    request: HttpRequest, document: QueueDocument, dimension: str, *, assigned: bool
) -> EntitlementForm | QueueStateAndWeightForm:
    chip = dimension.partition(":")[2]
    form, initial = (
        (QueueStateAndWeightForm, QueueForm.initial_values_of_job(document))
        if dimension == _STATE_AND_WEIGHT
        else (
            EntitlementForm,
            EntitlementForm.initial_values_of_job(chip, document.entitlement(chip)),
        )
    )
    fixed = ("weight", *QUOTA_FIELDS) if assigned else ()
    return form(request.POST or None, prefix=document.uid, initial=initial, fixed=fixed)


def _bulk_edit(grid_rows: list[BulkEditRow]) -> TreeEdit | None:
    rows = [(row.document, row.form) for row in grid_rows if row.form is not None]
    # Validate every row, so that each shows its errors.
    valid = [form.is_valid() for _document, form in rows]
    if not rows or not all(valid):
        return None
    queues = {document.uid: form.edited(document) for document, form in rows}
    return TreeEdit(queues=queues, action=TreeAction.BULK)
