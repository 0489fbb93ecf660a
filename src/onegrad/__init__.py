"""onegrad"""
