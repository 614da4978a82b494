"""Fuzz targets: programs that feed hostile input to Holdfast until it misbehaves. Not part of the installed package."""
