"""What finite n, k and m add to the limit."""
