"""A message to one life of one member: at most once, in order."""
