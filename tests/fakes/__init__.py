"""Adapters in memory, for tests.

``entry_points`` declares them as an installed package would. It is on the path of development environments alone
(``dev-mode-dirs`` in ``pyproject.toml``), so the product has no adapter of the kind ``fake``.
"""
