"""What the steps make of a neuron: types, and what is left to chance in them."""
