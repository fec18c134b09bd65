"""The home page."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext_lazy

from apps.accounts.web.http_requests import AuthenticatedRequest
from apps.console.selectors.home import OnboardingStep, OnboardingSteps, home_of_user
from controlplane.web.pages import render_page


@login_required
def home_dashboard(request: AuthenticatedRequest) -> HttpResponse:
    """Running and pending jobs, and items that require action."""
    shown = home_of_user(request.user, at=timezone.now())
    context = {"home": shown, "steps": _onboarding_step_rows(shown.steps) if shown.steps else []}
    template = "console/home.html"
    return render_page(
        request, template, context, fragment="now", changing=shown.needs_auto_refresh
    )


_STEP_LABELS = {
    OnboardingStep.MODEL: (
        gettext_lazy("Register a model"),
        gettext_lazy("Directory with config.json and safetensors files."),
        gettext_lazy("Register"),
        "model-import",
    ),
    OnboardingStep.DATASET: (
        gettext_lazy("Upload a dataset"),
        gettext_lazy("Prompt-response pairs or chats. Every row is validated during the upload."),
        gettext_lazy("Upload"),
        "dataset-new",
    ),
    OnboardingStep.FINETUNE: (
        gettext_lazy("Fine-tune"),
        gettext_lazy("Train the model on the dataset. Creates a new version."),
        gettext_lazy("Start"),
        "job-new-finetune",
    ),
    OnboardingStep.DEPLOY: (
        gettext_lazy("Deploy"),
        gettext_lazy("Serve a model version at an OpenAI-compatible endpoint."),
        gettext_lazy("Open model version"),
        "models",
    ),
    OnboardingStep.TALK: (
        gettext_lazy("Chat"),
        gettext_lazy("Send prompts in the playground and copy client examples."),
        gettext_lazy("Open playground"),
        "playground",
    ),
}


def _onboarding_step_rows(steps: OnboardingSteps) -> list[dict[str, Any]]:
    """The first steps, each with its link."""
    rows = []
    for step, (label, hint, action, page) in _STEP_LABELS.items():
        href = reverse(page)
        if step is OnboardingStep.DEPLOY and steps.tuned is not None:
            href = reverse("model-version", args=[steps.tuned.uid])
        state = {"done": step in steps.done, "next": step is steps.next}
        rows.append({"label": label, "hint": hint, "action": action, "href": href, **state})
    return rows
