"""OpenVINO IR: reading `.xml` and `.bin` into the neutral graph, and writing them."""
