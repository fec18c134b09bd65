"""Uploading a dataset, registering a folder."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

from django import forms
from django.utils.text import slugify
from django.utils.translation import gettext_lazy as _

from apps.accounts.web.forms import TeamForm
from apps.models import selectors
from controlplane.domain.datasets.schemas import ColumnMapping


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
            "Letters, digits, - and _. Empty takes the file's name. A known name adds a version to that dataset."
        ),
    )
    description = forms.CharField(label=_("Description"), required=False)
    instruction = forms.CharField(label=_("Column of the question"), required=False)
    input = forms.CharField(label=_("Column of the input"), required=False)
    output = forms.CharField(label=_("Column of the answer"), required=False)
    rejected = forms.CharField(label=_("Column of the rejected answer"), required=False)
    system = forms.CharField(label=_("Column of the system message"), required=False)
    messages = forms.CharField(label=_("Column of the messages"), required=False)
    text = forms.CharField(label=_("Column of the text"), required=False)
    split = forms.CharField(label=_("Column of the split"), required=False)

    def clean(self) -> dict[str, Any]:
        """A name is taken from the file where none was typed."""
        values = super().clean() or self.cleaned_data
        if not values.get("name") and "name" not in self.errors and values.get("file"):
            values["name"] = slugify(PurePath(values["file"].name).stem)[:80]
            if not values["name"]:
                self.add_error("name", _("The file's name has no Latin letters; type a name."))
        return values

    def columns(self) -> ColumnMapping | None:
        """The columns that were named by hand, if any."""
        named = {name: self.cleaned_data[name] for name in self.more if self.cleaned_data[name]}
        return ColumnMapping(**named) if named else None


class ImportForm(TeamForm):
    """A folder on the product's machine that becomes a version of the named model."""

    path = forms.ChoiceField(label=_("Folder"))
    name = forms.SlugField(
        label=_("Name"),
        max_length=80,
        required=False,
        help_text=_("Empty takes the folder's name. A known name adds a version to that model."),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.choice("path").choices = [
            (folder["path"], folder["name"]) for folder in selectors.registrable_folders()
        ]

    def line_name(self) -> str:
        """The name that was typed, or the folder's."""
        typed: str = self.cleaned_data["name"]
        return typed or str(self.cleaned_data["path"]).rstrip("/").rpartition("/")[2]
