"""Holdfast: coordination without a coordinator."""
