"""Speed and memory: the straightforward procedure against ours, in one run."""
