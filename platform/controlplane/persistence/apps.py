from django.apps import AppConfig


class PersistenceConfig(AppConfig):
    name = "controlplane.persistence"
    label = "persistence"
    default_auto_field = "django.db.models.BigAutoField"
