from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_delete, post_save


class AccountsConfig(AppConfig):
    name = "apps.accounts"
    label = "accounts"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        # Rows of this app and what stands on them can be imported only now.
        from apps.accounts.models import CompanyRoleBinding, Membership  # noqa: PLC0415
        from apps.accounts.services import staff_derive  # noqa: PLC0415
        from apps.accounts.web import receivers  # noqa: F401, PLC0415

        def derive(instance: Membership | CompanyRoleBinding, **_more: Any) -> None:
            staff_derive(instance.user)

        # Whoever gives or takes a role, however: the way into the admin follows.
        for signal in (post_save, post_delete):
            for sender in (Membership, CompanyRoleBinding):
                signal.connect(derive, sender=sender, weak=False, dispatch_uid="staff_derive")
