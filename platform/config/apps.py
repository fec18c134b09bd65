from __future__ import annotations

from django.apps import AppConfig, apps
from django.conf import settings
from django.utils.translation import override, pgettext_lazy


class NinefoldConfig(AppConfig):
    name = "config"
    label = "config"

    def ready(self) -> None:
        # Its models can be imported from here on.
        from config.tasks import (  # noqa: PLC0415
            SUBSCRIBED_TOPICS,
            OutboxCommitRelay,
            ReconcileRunRecorder,
        )
        from controlplane.outbox import messages  # noqa: PLC0415

        translate_model_names()
        messages.set_subscribed_topics(SUBSCRIBED_TOPICS)
        if settings.NINEFOLD_WAKE_RELAY:
            messages.set_after_publish_callbacks(OutboxCommitRelay())
        ReconcileRunRecorder().connect()


#: Message context in the catalogues of ``templates/locale``, as a word may have other translations elsewhere.
CONTEXT = "table"


@override("en")
def translate_model_names() -> None:
    """Translate the names of our apps and models in the admin. Call it once all models are loaded."""
    for app in ninefold_app_configs():
        app.verbose_name = pgettext_lazy(CONTEXT, str(app.verbose_name))
        for model in app.get_models():
            names = model._meta
            names.verbose_name = pgettext_lazy(CONTEXT, str(names.verbose_name))
            names.verbose_name_plural = pgettext_lazy(CONTEXT, str(names.verbose_name_plural))


def ninefold_app_configs() -> list[AppConfig]:
    """The project's, without those of libraries."""
    return [
        app for app in apps.get_app_configs() if app.name.startswith(("apps.", "controlplane."))
    ]
