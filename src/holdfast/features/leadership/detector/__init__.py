"""The failure detector that agents load: freshness points, loss, ballots."""
