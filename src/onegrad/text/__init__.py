"""How numbers, tables and objects are written."""
