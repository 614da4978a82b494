"""One process per name: how two of one name learn of each other."""
