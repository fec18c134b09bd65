"""Sending of notifications, and changes of preferences and webhooks."""
