"""Forms of datasets, models, storage and memory estimates."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from pathlib import PurePath
from typing import Any, ClassVar
from urllib.parse import urlencode

from django import forms
from django.utils.text import slugify
from django.utils.translation import gettext, pgettext
from django.utils.translation import gettext_lazy as _

from apps.accounts.models import User
from apps.accounts.web.forms import TeamForm
from apps.fleet import selectors as fleet
from apps.models import selectors
from apps.models import selectors as registry
from apps.models.selectors import sizing
from apps.models.selectors.catalog import catalog_snapshot
from controlplane.domain.catalog import Modality
from controlplane.domain.common.resources import GIB
from controlplane.domain.common.spec_fields import FieldKind, SpecField
from controlplane.domain.datasets.schemas import ColumnMapping
from controlplane.domain.registry.versions import ModelState
from controlplane.domain.specs.sizing import SIZING, STORED
from controlplane.domain.storage.team_storage import RetentionRules
from controlplane.ports import adapter_registry as ports
from controlplane.web.forms import StyledForm


class DatasetForm(TeamForm):
    """A file that becomes a version of the named dataset."""

    more = ("instruction", "input", "output", "rejected", "system", "messages", "text", "split")

    file = forms.FileField(
        label=_("File"),
        help_text=_(
            "JSON Lines, JSON or CSV, in UTF-8, with question and answer, chat, preference or text columns."
        ),
        widget=forms.ClearableFileInput(attrs={"accept": ".jsonl,.json,.csv,.ndjson"}),
    )
    name = forms.SlugField(
        label=_("Name"),
        max_length=80,
        required=False,
        help_text=_(
            "Letters, digits, - and _. Default: the file name. An existing name adds a "
            "version to that dataset."
        ),
    )
    description = forms.CharField(label=_("Description"), required=False)
    instruction = forms.CharField(label=_("Question column"), required=False)
    input = forms.CharField(label=_("Input column"), required=False)
    output = forms.CharField(label=_("Answer column"), required=False)
    rejected = forms.CharField(label=_("Rejected answer column"), required=False)
    system = forms.CharField(label=_("System message column"), required=False)
    messages = forms.CharField(label=_("Messages column"), required=False)
    text = forms.CharField(label=_("Text column"), required=False)
    split = forms.CharField(label=_("Split column"), required=False)

    def clean(self) -> dict[str, Any]:
        """Derive the name from the file if it is empty."""
        values = super().clean() or self.cleaned_data
        if not values.get("name") and "name" not in self.errors and values.get("file"):
            values["name"] = slugify(PurePath(values["file"].name).stem)[:80]
            if not values["name"]:
                self.add_error("name", _("The file name has no Latin letters. Enter a name."))
        return values

    def columns(self) -> ColumnMapping | None:
        """The column mapping, if any column is named."""
        named = {name: self.cleaned_data[name] for name in self.more if self.cleaned_data[name]}
        return ColumnMapping(**named) if named else None


class FolderImportForm(TeamForm):
    """A folder on the server that becomes a version of the named model."""

    path = forms.ChoiceField(label=_("Folder"))
    name = forms.SlugField(
        label=_("Name"),
        max_length=80,
        required=False,
        help_text=_("Default: the folder name. An existing name adds a version to that model."),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.choice("path").choices = [
            (folder["path"], folder["name"]) for folder in selectors.importable_folders()
        ]

    def line_name(self) -> str:
        """The given name, or that of the folder."""
        typed: str = self.cleaned_data["name"]
        return typed or str(self.cleaned_data["path"]).rstrip("/").rpartition("/")[2]


MAX_RETENTION_DAYS = 3650
#: Gibibytes; the largest value that fits the column.
MAX_QUOTA_GIB = 1 << 30


class StorageQuotaForm(StyledForm):
    limit = forms.DecimalField(
        label=_("Quota in GiB"),
        required=False,
        min_value=0,
        max_value=MAX_QUOTA_GIB,
        decimal_places=3,
        help_text=_(
            "Maximum storage of the team in GiB. Empty: no limit. Existing objects above "
            "the quota are not deleted."
        ),
    )

    def limit_bytes(self) -> int | None:
        """The quota in bytes."""
        typed: Decimal | None = self.cleaned_data["limit"]
        return None if typed is None else int(typed * GIB)


class _DaysField(forms.IntegerField):
    """Retention in days; empty: no rule."""

    def __init__(self, **options: Any) -> None:
        super().__init__(required=False, min_value=0, max_value=MAX_RETENTION_DAYS, **options)


class RetentionRulesForm(StyledForm):
    """Empty fields switch a rule off."""

    enabled = forms.BooleanField(label=_("Enable these retention rules"), required=False)
    keep_versions = forms.IntegerField(
        label=_("Versions to keep per model"),
        help_text=_("Older versions are deleted unless they are in use or pinned."),
        required=False,
        min_value=1,
        max_value=100_000,
    )
    checkpoint_days = _DaysField(
        label=_("Checkpoint retention (days)"),
        help_text=_("Days after the end of a job; retries resume from checkpoints. Default: 7."),
    )
    failed_days = _DaysField(
        label=_("Retention of files of failed jobs (days)"),
        help_text=_("Files uploaded before the job failed."),
    )
    log_days = _DaysField(
        label=_("Log retention (days)"), help_text=_("The last log lines are kept with the run.")
    )

    def rules(self) -> RetentionRules:
        return RetentionRules(**self.cleaned_data)


#: Modalities whose memory can be estimated: text generation.
_SIZED_MODALITIES = frozenset({Modality.LLM, Modality.VLM})
#: Newest registered versions that can be selected.
_MAX_VERSIONS = 50


#: The inputs of the calculator and of its parallel plan, by name.
_SIZING_INPUTS: Mapping[str, SpecField] = {
    field.name: field for field in (*(part for group in SIZING for part in group.fields), *SIZING)
}
#: Labels of inputs that are called otherwise than in the table.
_SIZING_LABELS: Mapping[str, Any] = {
    "batch": _("Batch size per card"),
    "kv_precision": _("KV cache precision"),
}
#: Inputs that contain their defaults; the others show them as placeholders.
_FILLED_INPUTS = ("task", "context", "concurrency", "batch", "adapters")
#: Labels of choices; others are shown as they are.
_SIZING_CHOICES: Mapping[str, Any] = {
    "serve": _("serving"),
    "train": _("training"),
    STORED: _("precision of the stored weights"),
    "auto": _("automatic"),
    "on": _("yes"),
    "off": _("no"),
}
_SIZING_HELP: Mapping[str, Any] = {
    "context": _(
        "Maximum length in tokens: of prompt and answer when serving, of an example when training."
    ),
    "adapters": _(
        "LoRA adapters that are served beside the model, of the rank below: 0 to 16. Default: 0."
    ),
    "cards": _("Number of cards. Empty: the fewest that fit."),
}


def _sizing_field(name: str) -> forms.Field:
    """An input of the calculator; an empty one has the default."""
    spec_field = _SIZING_INPUTS[name]
    shared = {
        "label": _SIZING_LABELS.get(name) or _(spec_field.label),
        "help_text": _SIZING_HELP.get(name, ""),
        "initial": spec_field.default if name in _FILLED_INPUTS else None,
        "required": False,
    }
    if spec_field.kind is FieldKind.CHOICE:
        radios = forms.RadioSelect(attrs={"class": "form-check-input"})
        return forms.ChoiceField(
            choices=[(each, _SIZING_CHOICES.get(each, each)) for each in spec_field.choices],
            widget=radios if name == "task" else forms.Select(),
            **shared,
        )
    field = forms.IntegerField(widget=forms.NumberInput(attrs={"inputmode": "numeric"}), **shared)
    if spec_field.default is not None:
        field.widget.attrs["placeholder"] = spec_field.default
    return field


class SizingForm(StyledForm):
    """Every field except the model has a default."""

    more = (
        "scheme",
        "kv_precision",
        "precision",
        "adapters",
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

    model = forms.ChoiceField(label=_("Model"))
    chip = forms.ChoiceField(label=_("Chip"), required=False)
    engine = forms.ChoiceField(label=_("Engine"), required=False)

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in ("task", "context", "concurrency", "batch", "method", *self.more):
            self.fields[name] = _sizing_field(name)
            self.dress(self.fields[name])
        self._set_choices("model", [("", gettext("Select a model")), *_model_choices(user)])
        chips = [known.chip for known in fleet.fleet_chips()]
        self._set_choices("chip", [(chip.name, chip.label) for chip in chips])
        with_memory = next((chip.name for chip in chips if chip.memory), "")
        self.fields["chip"].initial = with_memory
        engines = [
            (name, ports.engine_by_name(name).profile().title) for name in ports.engine_names()
        ]
        self._set_choices("engine", [("", gettext("default engine")), *engines])

    def _set_choices(self, name: str, choices: list[Any]) -> None:
        field = self.fields[name]
        if isinstance(field, forms.ChoiceField):
            field.choices = choices

    def sized(self, *, user: User) -> sizing.SizingResult:
        """:raises SizingRefused: if a field is invalid."""
        values = self.cleaned_data
        subject = sizing.sizing_subject_by_name(values["model"], user=user)
        chip = values["chip"] or self.fields["chip"].initial
        return sizing.estimate_memory(
            subject, self._filled_values(), chip=chip, engine=values["engine"]
        )

    def _filled_values(self) -> Mapping[str, Any]:
        """The filled fields; the others have defaults."""
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
        """Query of the chart for the same model."""
        names = ("model", "scheme", "engine", "kv_precision")
        return urlencode(
            {name: self.cleaned_data[name] for name in names if self.cleaned_data[name]}
        )


def _model_choices(user: User) -> list[Any]:
    """Registered versions first, then catalog entries; each group by name."""
    ready = registry.model_versions_visible(user).filter(state=ModelState.READY)
    ours = [(f"version:{one.uid}", str(one)) for one in ready.order_by("-pk")[:_MAX_VERSIONS]]
    entries = sorted(catalog_snapshot().entries.values(), key=lambda entry: entry.title.lower())
    listed = [
        (f"catalog:{entry.key}", entry.title)
        for entry in entries
        if entry.modality in _SIZED_MODALITIES
    ]
    groups = ((pgettext("tab", "My models"), ours), (pgettext("tab", "Catalog"), listed))
    return [(label, choices) for label, choices in groups if choices]
