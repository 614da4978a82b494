"""What Holdfast can do, one folder per capability; a room that a feature does not need is not there."""
