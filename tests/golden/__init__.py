"""Numbers of the whole library as they were recorded: no refactoring may change one of them."""
