"""What the calculator asks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar
from urllib.parse import urlencode

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as __

from apps.accounts.models import User
from apps.fleet import selectors as fleet
from apps.models import selectors as registry
from apps.models.selectors import sizing
from apps.models.selectors.catalog import shelf
from controlplane.domain.catalog import Modality
from controlplane.domain.models import ModelState
from controlplane.domain.sizing import SCHEMES
from controlplane.domain.specs.sizing import SIZING, STORED
from controlplane.domain.specs.training import METHODS
from controlplane.ports import registry as ports
from controlplane.web.forms import PlainForm

#: Kinds of models that write text, which is what can be sized.
_WRITES = frozenset({Modality.LLM, Modality.VLM})
#: Of our own versions, the newest that can be chosen.
_MOST_VERSIONS = 50
_WHOLE = forms.NumberInput(attrs={"inputmode": "numeric"})


class SizingForm(PlainForm):
    """Everything has a default but the model, so that the first choice has an answer."""

    more = (
        "scheme",
        "kv_precision",
        "precision",
        "rank",
        "recompute",
        "gradient_accumulation",
        "cards",
        "tensor",
        "pipeline",
        "zero_stage",
        "expert",
    )
    _parallel: ClassVar[tuple[str, ...]] = ("tensor", "pipeline", "zero_stage", "expert")

    task = forms.ChoiceField(
        label=__("What for?"),
        choices=[("serve", __("serve answers")), ("train", __("train"))],
        widget=forms.RadioSelect(attrs={"class": "form-check-input"}),
        initial="serve",
        required=False,
    )
    model = forms.ChoiceField(label=__("Model"))
    chip = forms.ChoiceField(label=__("Chip"), required=False)
    engine = forms.ChoiceField(label=__("Engine"), required=False)
    context = forms.IntegerField(
        label=__("Context"),
        initial=4096,
        required=False,
        widget=_WHOLE,
        help_text=__("Tokens of the longest prompt and answer, or of the longest row."),
    )
    concurrency = forms.IntegerField(
        label=__("Requests at once"), initial=16, required=False, widget=_WHOLE
    )
    batch = forms.IntegerField(
        label=__("Rows at once on a card"), initial=1, required=False, widget=_WHOLE
    )
    method = forms.ChoiceField(
        label=__("Method"),
        choices=[(method, method) for method in METHODS],
        required=False,
    )
    scheme = forms.ChoiceField(
        label=__("Weights"),
        choices=[(STORED, __("as they are stored")), *((name, name) for name in sorted(SCHEMES))],
        required=False,
    )
    kv_precision = forms.ChoiceField(
        label=__("Precision of the KV cache"),
        choices=[("auto", __("automatic")), ("fp8", "fp8")],
        required=False,
    )
    precision = forms.ChoiceField(
        label=__("Precision"),
        choices=[(name, name) for name in ("bfloat16", "float16", "float32")],
        required=False,
    )
    rank = forms.IntegerField(label=__("LoRA rank"), required=False, widget=_WHOLE)
    recompute = forms.ChoiceField(
        label=__("Recompute activations"),
        choices=[("on", __("yes")), ("off", __("no"))],
        required=False,
    )
    gradient_accumulation = forms.IntegerField(
        label=__("Gradient accumulation"), required=False, widget=_WHOLE
    )
    cards = forms.IntegerField(
        label=__("Cards"),
        required=False,
        widget=_WHOLE,
        help_text=__("Empty: the fewest that fit."),
    )
    tensor = forms.IntegerField(label=__("Tensor parallel"), required=False, widget=_WHOLE)
    pipeline = forms.IntegerField(label=__("Pipeline parallel"), required=False, widget=_WHOLE)
    zero_stage = forms.IntegerField(label=__("ZeRO stage"), required=False, widget=_WHOLE)
    expert = forms.IntegerField(label=__("Expert parallel"), required=False, widget=_WHOLE)

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for asked in SIZING:
            # What is left empty counts as this.
            if asked.name in self.fields and isinstance(asked.default, int):
                self.fields[asked.name].widget.attrs["placeholder"] = asked.default
        self._choose("model", [("", _("Choose a model")), *_models(user)])
        chips = [known.chip for known in fleet.fleet_chips()]
        self._choose("chip", [(chip.name, chip.label) for chip in chips])
        with_memory = next((chip.name for chip in chips if chip.memory), "")
        self.fields["chip"].initial = with_memory
        engines = [(name, ports.engine(name).profile().title) for name in ports.engine_names()]
        self._choose("engine", [("", _("a usual one")), *engines])

    def _choose(self, name: str, choices: list[Any]) -> None:
        field = self.fields[name]
        if isinstance(field, forms.ChoiceField):
            field.choices = choices

    def sized(self, *, user: User) -> sizing.Sized:
        """:raises SizingRefused: if something is wrong with what was asked."""
        values = self.cleaned_data
        subject = sizing.subject_called(values["model"], user=user)
        chip = values["chip"] or self.fields["chip"].initial
        return sizing.size(subject, self._question(), chip=chip, engine=values["engine"])

    def _question(self) -> Mapping[str, Any]:
        """What was filled in; the rest has defaults."""
        values = self.cleaned_data
        beside = {"model", "chip", "engine", *self._parallel}
        given = {
            name: value
            for name, value in values.items()
            if name not in beside and value not in (None, "")
        }
        parallel = {name: values[name] for name in self._parallel if values[name] is not None}
        return {**given, "parallel": parallel} if parallel else given

    def chart_query(self) -> str:
        """For the chart of the same model."""
        names = ("model", "scheme", "engine", "kv_precision")
        return urlencode(
            {name: self.cleaned_data[name] for name in names if self.cleaned_data[name]}
        )


def _models(user: User) -> list[Any]:
    """Those of ours first, then those of the catalog; each group by name."""
    ready = registry.model_versions_visible(user).filter(state=ModelState.READY)
    ours = [(f"version:{one.uid}", str(one)) for one in ready.order_by("-pk")[:_MOST_VERSIONS]]
    entries = sorted(shelf().entries.values(), key=lambda entry: entry.title.lower())
    listed = [
        (f"catalog:{entry.key}", entry.title) for entry in entries if entry.modality in _WRITES
    ]
    groups = ((_("Ours"), ours), (_("Catalog"), listed))
    return [(label, choices) for label, choices in groups if choices]
