"""Notifications to users: on pages, by e-mail and by webhooks of teams."""
