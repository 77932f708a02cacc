"""Object detection: boxes, their suppression and pooling."""
