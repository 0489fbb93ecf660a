"""The two-layer network itself: init, one gradient step, ridge readout, risk."""
