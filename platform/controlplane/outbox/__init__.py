"""Transactional outbox: messages are written with the change they announce, then relayed to Celery."""
