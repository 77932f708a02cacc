"""What tests share: engines run plainly, the models of `roundtrip_models/`, the command line."""
