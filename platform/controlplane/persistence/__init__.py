"""PostgreSQL building blocks: leases, advisory locks, state transitions, bulk writes."""
