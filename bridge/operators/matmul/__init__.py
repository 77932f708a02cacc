"""Matrix products, attention and linear algebra."""
