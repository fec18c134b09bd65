from django.apps import AppConfig


class OutboxConfig(AppConfig):
    name = "controlplane.outbox"
    label = "outbox"
    default_auto_field = "django.db.models.BigAutoField"
