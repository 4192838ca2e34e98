"""What crosses a process: the API, the worker protocol, the analyzer contract."""
