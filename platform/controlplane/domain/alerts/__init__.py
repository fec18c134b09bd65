"""Alerts: ``rules``, their ``notices``, ``chat_messages`` to receivers; ``notifications`` and ``deliveries``."""
