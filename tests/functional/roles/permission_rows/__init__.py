"""The rows of the table, by area."""
