"""What the tests share: models and servers that answer as a test says, conversations, recordings,
validators."""
