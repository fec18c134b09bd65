"""What people use: rows, services, pages, REST."""
