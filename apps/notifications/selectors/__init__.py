"""Queries on notifications, preferences and webhooks."""
