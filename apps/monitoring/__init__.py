"""What looks across the apps: home, the fleet, notifications, and how the product itself is doing."""
