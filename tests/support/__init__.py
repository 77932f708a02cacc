"""Parts that tests share: plain runs of the engines, the models of `roundtrip_models/`, the command
line."""
