"""The commands: options and help, one module a group. What they do is elsewhere.

Everything beyond click is imported inside the command that needs it, so that help and completion stay fast.
"""
