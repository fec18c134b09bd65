"""Forms that ask what would be different, and what a guarantee would take back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.crypto import salted_hmac
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy

from apps.fleet.models import Node
from apps.quotas.models import Claim, PriorityClass, Queue
from controlplane.domain.scheduling.questions import MOST_CARDS, MOST_NODES
from controlplane.domain.scheduling.what_if import (
    Cancelled,
    Change,
    DrainNode,
    MoreCards,
    MoreNodes,
    Urgent,
)
from controlplane.web.forms import PlainForm


class WhatIfForm(PlainForm):
    """What would be different; every part is optional, but one has to be given."""

    queue = forms.ChoiceField(label=lazy("Queue"), required=False)
    chip = forms.ChoiceField(label=lazy("Chip"), required=False)
    cards = forms.IntegerField(
        label=lazy("More cards guaranteed to the queue"),
        help_text=lazy("Less than 0 for fewer."),
        min_value=-MOST_CARDS,
        max_value=MOST_CARDS,
        required=False,
    )
    nodes = forms.IntegerField(
        label=lazy("More nodes"), min_value=1, max_value=MOST_NODES, required=False
    )
    like = forms.CharField(
        label=lazy("Like this one"),
        help_text=lazy("The name of a node, as on the page of the fleet."),
        max_length=200,
        required=False,
    )
    drained = forms.CharField(
        label=lazy("A node without work"),
        help_text=lazy("Its name; what runs there would stop and wait again."),
        max_length=200,
        required=False,
    )
    priority = forms.ModelChoiceField(
        label=lazy("Its priority"),
        queryset=PriorityClass.objects.all(),
        empty_label=lazy("as it is"),
        required=False,
    )
    gone = forms.ChoiceField(label=lazy("Without this work"), required=False)

    def __init__(
        self,
        data: Any = None,
        *,
        queues: Sequence[Queue],
        chips: Iterable[str],
        claim: Claim | None = None,
        others: Sequence[tuple[str, str]] = (),
    ) -> None:
        """:param others: uids and names of claims that may be imagined away."""
        super().__init__(data)
        self._claim = claim
        self._queues = {queue.uid: queue for queue in queues}
        self.choice("queue").choices = [(queue.uid, queue.name) for queue in queues]
        self.choice("chip").choices = [(chip, chip) for chip in chips]
        self._others = {_token(uid): uid for uid, _name in others}
        nobody = [("", _("everything stays"))]
        self.choice("gone").choices = [*nobody, *((_token(uid), name) for uid, name in others)]
        if claim is None:
            del self.fields["priority"]

    def clean_like(self) -> str:
        return self._node("like")

    def clean_drained(self) -> str:
        return self._node("drained")

    def _node(self, field: str) -> str:
        """The uid of the node of that name."""
        name = self.cleaned_data[field].strip()
        if not name:
            return ""
        uid = Node.objects.filter(name=name).values_list("uid", flat=True).first()
        if uid is None:
            raise ValidationError(_("There is no node called %(name)s.") % {"name": name})
        return uid

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        if values.get("nodes") and not values.get("like") and "like" not in self.errors:
            self.add_error("like", _("Say which node the new ones are like."))
        if values.get("cards") and not values.get("chip"):
            self.add_error("chip", _("Say of which chip."))
        if not self.errors and not self.changes():
            raise ValidationError(_("Nothing would be different; fill in at least one part."))
        return values

    def changes(self) -> list[Change]:
        """What would be different, once the form is valid."""
        given, changes = self.cleaned_data, list[Change]()
        if given.get("cards"):
            changes.append(
                MoreCards(queue=self.queue_chosen().uid, chip=given["chip"], cards=given["cards"])
            )
        if given.get("nodes") and given.get("like"):
            changes.append(MoreNodes(like=given["like"], nodes=given["nodes"]))
        if given.get("drained"):
            changes.append(DrainNode(node=given["drained"]))
        if self._claim is not None and given.get("priority"):
            changes.append(Urgent(claim=self._claim.uid, priority=given["priority"].value))
        if given.get("gone"):
            changes.append(Cancelled(claim=self._others[given["gone"]]))
        return changes

    def queue_chosen(self) -> Queue:
        """The queue of the form: the claim's own where none was chosen."""
        if self.cleaned_data.get("queue"):
            return self._queues[self.cleaned_data["queue"]]
        return self._claim.queue if self._claim else next(iter(self._queues.values()))


def _token(uid: str) -> str:
    """Stands for a claim of which the reader need not know more than whose it is."""
    return salted_hmac("what-if", uid).hexdigest()[:16]


class ReclaimForm(PlainForm):
    """How much of its guarantee a queue would ask for."""

    chip = forms.ChoiceField(label=lazy("Chip"))
    cards = forms.IntegerField(label=lazy("Cards"), min_value=1, max_value=MOST_CARDS)
    together = forms.TypedChoiceField(
        label=lazy("On one node each"),
        choices=[(count, count) for count in (1, 2, 4, 8, 16)],
        coerce=int,
        initial=1,
    )

    def __init__(self, data: Any = None, *, chips: Iterable[str], **more: Any) -> None:
        super().__init__(data, **more)
        self.choice("chip").choices = [(chip, chip) for chip in chips]

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        cards, together = values.get("cards"), values.get("together")
        if cards and together and cards % together:
            self.add_error("cards", _("Give a multiple of %(together)d.") % {"together": together})
        return values
