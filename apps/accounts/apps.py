from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_delete, post_save


class AccountsConfig(AppConfig):
    name = "apps.accounts"
    label = "accounts"

    def ready(self) -> None:
        # Models can be imported only now.
        from apps.accounts.models import CompanyRoleBinding, Membership  # noqa: PLC0415
        from apps.accounts.services import staff_status_update  # noqa: PLC0415
        from apps.accounts.web import login_security  # noqa: F401, PLC0415

        def derive(instance: Membership | CompanyRoleBinding, **_more: Any) -> None:
            staff_status_update(instance.user)

        # Access to the admin follows every change of a role.
        for signal in (post_save, post_delete):
            for sender in (Membership, CompanyRoleBinding):
                signal.connect(
                    derive, sender=sender, weak=False, dispatch_uid="staff_status_update"
                )
