"""``holdfast lab``: the simulator. One file per verb; ``cli.verbs`` lists them."""
