from django.apps import AppConfig


class NinefoldConfig(AppConfig):
    name = "config"
    label = "config"
