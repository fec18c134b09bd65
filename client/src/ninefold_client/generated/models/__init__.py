"""Types of request and response bodies, one module each."""
