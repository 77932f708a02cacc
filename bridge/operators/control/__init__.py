"""If and Loop."""
