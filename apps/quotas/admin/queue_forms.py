"""Forms to edit queues, from and to ``QueueDocument``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from controlplane.domain.quotas.documents import QueueDocument
from controlplane.domain.quotas.queues import TOTAL, ChipQuota, QueueState
from controlplane.web.forms import PlainForm

STATES = (
    (QueueState.OPEN, _("Open: takes claims and admits them")),
    (QueueState.DRAINING, _("Draining: takes no new claims; those that wait are still admitted")),
    (QueueState.CLOSED, _("Closed: takes and admits nothing; what runs goes on")),
)


class SaveForm(PlainForm):
    """Note, confirmation and tree fingerprint of a change."""

    note = forms.CharField(
        label=_("Reason"),
        required=False,
        max_length=500,
        help_text=_("Kept in the history beside the change."),
    )
    confirm = forms.CharField(label=_("Confirmation"), required=False, max_length=80)
    #: Fingerprint of the tree that the user saw.
    seen = forms.CharField(widget=forms.HiddenInput, required=False, max_length=80)
    #: Uid of the newest change when the page was opened.
    since = forms.CharField(widget=forms.HiddenInput, required=False, max_length=32)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["confirm"].widget.attrs["autocomplete"] = "off"


class QueueForm(PlainForm):
    """A queue without its entitlements."""

    name = forms.SlugField(
        label=_("Name"),
        max_length=60,
        help_text=_("Latin letters, digits, - and _; no other queue may have it."),
    )
    parent = forms.ChoiceField(label=_("Below"), required=False)
    team = forms.ChoiceField(
        label=_("Team"),
        required=False,
        help_text=_("Only that team may use it and the queues below it."),
    )
    state = forms.ChoiceField(label=_("State"), choices=STATES, initial=QueueState.OPEN)
    weight = forms.FloatField(
        label=pgettext_lazy("queue", "Weight"),
        initial=1.0,
        help_text=_(
            "Its share of what is idle, against the queues beside it: 2 gets twice as much as 1."
        ),
    )
    max_running_per_user = forms.IntegerField(
        label=_("Running at once per person"),
        required=False,
        min_value=1,
        help_text=_("Most claims of one person that hold cards at once; empty: no limit."),
    )
    description = forms.CharField(
        label=_("Description"), required=False, widget=forms.Textarea(attrs={"rows": 2})
    )
    borrows = forms.BooleanField(
        label=_("Borrows"),
        required=False,
        initial=True,
        help_text=_("May hold more than its guarantee while others leave theirs idle."),
    )
    lends = forms.BooleanField(
        label=_("Lends"),
        required=False,
        initial=True,
        help_text=_("Others may use its guarantee while it is idle; never what is reserved."),
    )
    reclaims = forms.BooleanField(
        label=_("Reclaims"),
        required=False,
        initial=True,
        help_text=_(
            "Takes its guarantee back from borrowers as soon as its own work waits for it."
        ),
    )
    preempts = forms.BooleanField(
        label=_("Preempts"),
        required=False,
        initial=True,
        help_text=_("Its urgent claims may take the place of its own less urgent ones."),
    )

    policies = ("borrows", "lends", "reclaims", "preempts")

    def __init__(
        self,
        *args: Any,
        parents: Iterable[tuple[str, str]],
        teams: Iterable[tuple[str, str]],
        fixed: Iterable[str] = (),
        **kwargs: Any,
    ) -> None:
        """:param fixed: names of read-only fields."""
        super().__init__(*args, **kwargs)
        self.choice("parent").choices = parents
        self.choice("team").choices = teams
        for name in fixed:
            self.fields[name].disabled = True

    def document(self, *, uid: str, entitlements: Mapping[str, ChipQuota]) -> QueueDocument:
        """The document of a valid form."""
        values = self.cleaned_data
        return QueueDocument(
            uid=uid or f"new:{values['name']}",
            name=values["name"],
            parent=values["parent"],
            team=values["team"],
            state=QueueState(values["state"]),
            description=values["description"].strip(),
            weight=values["weight"],
            max_running_per_user=values["max_running_per_user"],
            entitlements=entitlements,
            **{policy: values[policy] for policy in self.policies},
        )

    @classmethod
    def initial_of(cls, document: QueueDocument) -> dict[str, Any]:
        """The document as initial values."""
        values = {name: getattr(document, name) for name in cls.base_fields}
        return {
            **values,
            "state": document.state.value,
            "weight": f"{document.weight:.12g}",
        }


class EntitlementForm(PlainForm):
    """The entitlement of a queue for one chip; a row of a table."""

    reserved = forms.IntegerField(label=_("Reserved"), required=False, min_value=0)
    guaranteed = forms.IntegerField(label=_("Guaranteed"), required=False, min_value=0)
    cap = forms.IntegerField(label=pgettext_lazy("most cards", "Cap"), required=False, min_value=0)

    def __init__(self, *args: Any, fixed: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in ("reserved", "guaranteed", "cap"):
            self.fields[name].widget.attrs["aria-label"] = f"{self.fields[name].label}"
            self.fields[name].disabled = fixed

    @property
    def entitlement(self) -> ChipQuota:
        """The entitlement of a valid row."""
        values = self.cleaned_data
        return ChipQuota(
            reserved=values.get("reserved") or 0,
            guaranteed=values.get("guaranteed") or 0,
            cap=values.get("cap"),
        )

    @classmethod
    def initial_of(cls, chip: str, configured: ChipQuota) -> dict[str, Any]:
        return {
            "chip": chip,
            "reserved": configured.reserved or None,
            "guaranteed": configured.guaranteed or None,
            "cap": configured.cap,
        }


class EntitlementTable:
    """A row for each chip, and one for all chips together."""

    def __init__(
        self,
        configured: Mapping[str, ChipQuota],
        chips: Iterable[str],
        *,
        data: Any = None,
        fixed: bool = False,
    ) -> None:
        """:param chips: chips that have a row even without an entitlement."""
        listed = dict.fromkeys((*chips, *sorted(configured)))
        listed.pop(TOTAL, None)
        self.rows = tuple(
            EntitlementForm(
                data,
                prefix=f"cards-{chip or 'total'}",
                initial=EntitlementForm.initial_of(chip, configured.get(chip, ChipQuota())),
                fixed=fixed,
            )
            for chip in (*listed, TOTAL)
        )

    @property
    def chips(self) -> tuple[str, ...]:
        return tuple(row.initial["chip"] for row in self.rows)

    def is_valid(self) -> bool:
        # Validate every row, so that each shows its errors.
        valid = [row.is_valid() for row in self.rows]
        return all(valid)

    @property
    def entitlements(self) -> Mapping[str, ChipQuota]:
        """The entitlements of valid rows by chip, without empty ones."""
        configured = {row.initial["chip"]: row.entitlement for row in self.rows}
        return {chip: one for chip, one in configured.items() if one != ChipQuota()}
