"""Changes to deployments, routes and keys; snapshots for gateways and usage from them."""
