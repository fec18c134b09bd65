"""What changes what people are told of."""
