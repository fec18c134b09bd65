"""The guided fine-tune: which model, which rows, which way; and what that will take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from django import forms
from django.utils.translation import gettext_lazy as _

from apps.accounts.models import User
from apps.jobs.selectors.estimates import Estimate, Plan, estimate_of
from apps.jobs.web.forms import ModelJobForm, number
from apps.models import selectors as models
from controlplane.domain.jobs import JobKind


class FinetuneForm(ModelJobForm):
    kind = JobKind.FINETUNE
    spec_fields: ClassVar[Mapping[str, str]] = {
        "method": "method",
        "learning_rate": "learning_rate",
        "epochs": "epochs",
        "batch_size": "batch_size",
        "gradient_accumulation": "gradient_accumulation",
        "max_length": "max_length",
        "max_steps": "max_steps",
        "warmup_ratio": "warmup_ratio",
        "weight_decay": "weight_decay",
        "scheduler": "scheduler",
        "precision": "precision",
        "checkpoint_every_steps": "checkpoint_every_steps",
        "log_every_steps": "log_every_steps",
        "lora_rank": "lora.rank",
        "lora_alpha": "lora.alpha",
        "lora_dropout": "lora.dropout",
        "seed": "seed",
    }
    more = (*list(spec_fields)[3:], "name")
    field_order = ("team", "model_version", "dataset_version", "output_name", "method")
    #: The fields of each step, in the order in which they are asked.
    steps: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "model": ("team", "model_version", "output_name"),
        "data": ("dataset_version", "epochs"),
        "method": ("method", "learning_rate", "chip", "cards"),
    }

    output_name = forms.SlugField(
        label=_("Name of the new model"),
        max_length=80,
        help_text=_("Letters, digits, - and _. A known name adds a version to that model."),
    )
    method = forms.ChoiceField(
        label=_("Method"),
        choices=[("full", _("all weights")), ("lora", _("LoRA: small added weights"))],
        widget=forms.RadioSelect(attrs={"class": "form-check-input"}),
        required=False,
    )
    learning_rate = number(
        _("Learning rate"),
        help_text=_("How large the steps are. Too large, and the loss grows instead of falling."),
    )
    epochs = number(
        _("Epochs"), help_text=_("How often each row is seen. More than five is seldom of use.")
    )
    batch_size = number(_("Batch size"), whole=True)
    gradient_accumulation = number(_("Gradient accumulation"), whole=True)
    max_length = number(_("Longest row in tokens"), whole=True)
    max_steps = number(_("Most steps"), whole=True, help_text=_("Empty: as the epochs need."))
    warmup_ratio = number(_("Warm-up, share of the steps"))
    weight_decay = number(_("Weight decay"))
    scheduler = forms.ChoiceField(
        label=_("Learning rate over time"),
        choices=[("cosine", _("cosine")), ("linear", _("linear")), ("constant", _("constant"))],
        required=False,
    )
    precision = forms.ChoiceField(
        label=_("Precision"),
        choices=[("auto", _("automatic")), ("float32", "float32"), ("bfloat16", "bfloat16")],
        required=False,
    )
    checkpoint_every_steps = number(_("Checkpoint every … steps"), whole=True)
    log_every_steps = number(_("Report every … steps"), whole=True)
    lora_rank = number(_("LoRA rank"), whole=True)
    lora_alpha = number(_("LoRA alpha"))
    lora_dropout = number(_("LoRA dropout"))
    seed = number(_("Seed"), whole=True)

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, user=user, **kwargs)
        if not self.is_bound and not self.initial.get("output_name"):
            self.initial["output_name"] = self._name_at_hand(user)

    def _name_at_hand(self, user: User) -> str:
        """Of a new model that learns from rows that are chosen already; they may change it."""
        uid = self.initial.get("dataset_version")
        rows = models.dataset_versions_usable(user).filter(uid=uid)
        name = rows.values_list("dataset__name", flat=True).first() if uid else None
        return f"{name}-model"[:80] if name else ""

    @property
    def model_fields(self) -> list[forms.BoundField]:
        return self._step("model")

    @property
    def data_fields(self) -> list[forms.BoundField]:
        return self._step("data")

    @property
    def method_fields(self) -> list[forms.BoundField]:
        return self._step("method")

    def _step(self, step: str) -> list[forms.BoundField]:
        return [self[name] for name in self.steps[step] if not self[name].is_hidden]

    def _chosen(self) -> Mapping[str, Any]:
        method = self.data.get("method") or self.initial.get("method")
        return {"method": method} if method in ("full", "lora") else {}

    def spec(self) -> dict[str, Any]:
        spec = super().spec()
        if spec.get("method") != "lora":
            spec.pop("lora", None)
        return spec

    def default_name(self) -> str:
        return f"fine-tune {self.cleaned_data['output_name']}"


def estimate_for(form: FinetuneForm, spec: Mapping[str, Any], *, user: User) -> Estimate:
    """Of a form whose fields are all right, with the spec that they make."""
    values = form.cleaned_data
    plan = Plan(
        version=values["model_version"],
        dataset=values["dataset_version"],
        spec=spec,
        queue=values["queue"],
        chip=values["chip"],
        cards=values["cards"],
    )
    return estimate_of(plan, user=user)
