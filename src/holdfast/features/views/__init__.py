"""Agreed views: every member of a view can reach every other one, directly or by the overlay, or another view comes."""
