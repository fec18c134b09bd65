"""News that must not be lost: written with the change it tells of, relayed to Celery afterwards."""
