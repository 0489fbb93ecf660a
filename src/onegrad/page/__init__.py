"""The explorer: a local page on which the theory follows the sliders.

server.py listens, guard.py keeps strangers out, app.py serves the page's files and sockets;
session.py speaks with one page, requests.py reads its messages by the spec's own rules within
bounds.py, pool.py runs worker processes, work.py is what they compute and cache.py remembers it.
controls.py tells the page which settings there are; stored.py opens a finished run.
"""
