"""What agents measure of each other for `doctor`."""
