"""Arrays and the machine: backends, threads, memory that is used again."""
