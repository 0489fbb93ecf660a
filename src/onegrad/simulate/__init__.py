"""Monte Carlo: networks drawn, trained and measured."""
