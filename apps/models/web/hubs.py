"""Fetching models from hubs: what would come, asking for it, ending it."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.text import slugify
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy
from django.views.decorators.http import require_POST

from apps.accounts import selectors as accounts
from apps.accounts.web.forms import TeamForm
from apps.accounts.web.requests import AuthenticatedRequest
from apps.models import selectors
from apps.models.selectors.hubs import hub_place, hub_places
from apps.models.services import hub_imports as services
from controlplane.domain.common.permissions import Permission
from controlplane.domain.hubs import HubRefused
from controlplane.domain.outbound.egress import EgressRefused
from controlplane.domain.storage.usage import StorageQuotaExceeded
from controlplane.ports.hubs import HubUnreachable
from controlplane.web.pages import Tab, run_action


class HubForm(TeamForm):
    """A repository of a hub that becomes a version of the named model."""

    field_order = ("team", "hub", "repository", "revision", "name")

    hub = forms.ChoiceField(label=lazy("Hub"))
    repository = forms.CharField(
        label=lazy("Repository"),
        max_length=200,
        help_text=lazy("Owner and name, for example Qwen/Qwen3-8B."),
        widget=forms.TextInput(attrs={"spellcheck": "false", "autocapitalize": "off"}),
    )
    revision = forms.CharField(
        label=lazy("Revision"),
        max_length=200,
        required=False,
        help_text=lazy("A branch, a tag or a commit; empty takes the hub's main branch."),
    )
    name = forms.SlugField(
        label=lazy("Name"),
        max_length=80,
        required=False,
        help_text=lazy(
            "Empty takes the repository's name. A known name adds a version to that model."
        ),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.choice("hub").choices = [
            (place.hub.name, f"{place.hub.title} ({place.address})") for place in hub_places()
        ]

    def wanted(self) -> dict[str, str]:
        """Hub, repository and revision, with what was left empty filled in."""
        values = self.cleaned_data
        return {
            "hub": values["hub"],
            "repository": values["repository"].strip(),
            "revision": values["revision"] or hub_place(values["hub"]).hub.default_revision,
        }

    def line_name(self) -> str:
        """The name that was typed, or the repository's."""
        typed: str = self.cleaned_data["name"]
        return typed or slugify(self.cleaned_data["repository"].rpartition("/")[2])[:80]


def tabs(current: str) -> list[Tab]:
    """The two ways to bring a model."""
    return [
        Tab(label=_("From a folder"), href=reverse("model-import"), current=current == "folder"),
        Tab(label=_("From a hub"), href=reverse("model-fetch"), current=current == "hub"),
    ]


@login_required
def model_fetch(request: AuthenticatedRequest) -> HttpResponse:
    """The button ``look`` shows what would come; the other one asks for it."""
    bound = request.method == "POST"
    chosen = {name: request.GET[name] for name in HubForm.base_fields if name in request.GET}
    form = HubForm(request.POST if bound else None, user=request.user, initial=chosen)
    found = None
    if bound and form.is_valid():
        team = form.cleaned_data["team"]
        accounts.require(request.user, Permission.CONTRIBUTE, team=team)
        try:
            looked_up = services.hub_look_up(**form.wanted())
            if "look" in request.POST:
                found = looked_up
            else:
                version = services.hub_import_request(
                    actor=request.user, team=team, name=form.line_name(), found=looked_up
                )
                messages.success(request, _("%(version)s is being fetched.") % {"version": version})
                return redirect("model-version", uid=version.uid)
        except (HubRefused, HubUnreachable, EgressRefused) as refusal:
            form.add_error("repository", str(refusal))
        except StorageQuotaExceeded as full:
            form.add_error(None, str(full))
    context = {"form": form, "found": found, "tabs": tabs("hub")}
    status = 422 if bound and found is None else 200
    return render(request, "registry/model_fetch.html", context, status=status)


@login_required
@require_POST
def fetch_cancel(request: AuthenticatedRequest, uid: str) -> HttpResponse:
    """End an import that is on its way; what has arrived is kept for another try."""
    version = get_object_or_404(selectors.model_versions_visible(request.user), uid=uid)
    accounts.require(request.user, Permission.CONTRIBUTE, team=version.line.team)
    return run_action(
        request,
        lambda: services.hub_import_cancel(version=version, actor=request.user, at=timezone.now()),
        back=reverse("model-version", args=[uid]),
        done=_("The import was ended. Try it again to go on from where it was."),
    )
