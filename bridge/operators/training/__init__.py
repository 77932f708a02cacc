"""Steps of optimisers."""
