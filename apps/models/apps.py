from django.apps import AppConfig


class RegistryConfig(AppConfig):
    name = "apps.models"
    label = "registry"
    default_auto_field = "django.db.models.BigAutoField"
