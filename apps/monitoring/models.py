"""What the product tells people of."""
