"""Images: colour formats and decoding."""
