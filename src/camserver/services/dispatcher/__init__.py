"""Claims jobs, asks the analyzer, decides, applies; and sweeps."""
