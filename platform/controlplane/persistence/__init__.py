"""What the rows need from PostgreSQL: leases, advisory locks, guarded moves."""
