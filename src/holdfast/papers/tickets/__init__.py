"""The algorithms of the tickets paper, line by line."""
