"""The static arbitrator that the ring's paper starts from."""
