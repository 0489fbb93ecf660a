"""First layers after training: types of neurons, or the actual matrix."""
