"""A session on a device: its arithmetic, exact checks, times and training, kept in one folder.

Each stage is a command of this project in a process of its own (`stages.py`), so that one that
fails, or a device that is lost, costs that stage alone. `session.py` runs them within the minutes
that are given and keeps what was done; `page.py` makes one page of it.
"""
