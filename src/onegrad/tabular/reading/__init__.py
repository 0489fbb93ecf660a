"""Reading tables of other people."""
