"""The HTTP seam and what goes around it."""
