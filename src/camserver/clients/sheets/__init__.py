"""Sheets whose rows are scored: CSV, Excel and Parquet files, and Google Sheets."""
