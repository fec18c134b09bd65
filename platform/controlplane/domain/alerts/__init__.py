"""Alerts: ``rules`` over samples, their ``lifecycle``, ``messages`` to receivers; notifications and deliveries."""
