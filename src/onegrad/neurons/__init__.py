"""Each neuron's overlap with spikes, means and teachers, before and after each step."""
