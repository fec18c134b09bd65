"""Changes to deployments, keys and usage; what gateways are told."""
