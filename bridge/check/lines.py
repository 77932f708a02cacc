"""Messages on one line."""


def shortened(message: str, limit: int = 200) -> str:
    """A message on one line."""
    text = " ".join(message.split())
    return text if len(text) <= limit else text[: limit - 3] + "..."
