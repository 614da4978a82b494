"""Glue to frameworks that Holdfast does not need: each module is an extra, and uses only the public names of Holdfast."""
