"""Alerts: rules over what is known (``rules``), how each stands (``states``), who is told what (``groups``)."""
