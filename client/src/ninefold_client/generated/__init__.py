"""Generated from the OpenAPI document by ``make client``; do not edit."""
