"""Theory against simulation and against published figures."""
