"""What apps and tables are called in the admin, in the reader's language.

Names are for readers: no migration says what they are in another language. English ones are the models' own.
"""

from __future__ import annotations

from django.apps import AppConfig, apps
from django.utils.translation import override, pgettext_lazy

#: Under which the catalogues of ``templates/locale`` have them, as a word may be called otherwise elsewhere.
CONTEXT = "table"


@override("en")
def name_tables() -> None:
    """Give what is Ninefold's own its name in the reader's language. Call it when all models are there."""
    for app in own_apps():
        app.verbose_name = pgettext_lazy(CONTEXT, str(app.verbose_name))
        for model in app.get_models():
            names = model._meta
            names.verbose_name = pgettext_lazy(CONTEXT, str(names.verbose_name))
            names.verbose_name_plural = pgettext_lazy(CONTEXT, str(names.verbose_name_plural))


def own_apps() -> list[AppConfig]:
    """The project's, without those of libraries."""
    return [
        app for app in apps.get_app_configs() if app.name.startswith(("apps.", "controlplane."))
    ]
