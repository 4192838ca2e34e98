"""Control: the workers' side of the server."""
