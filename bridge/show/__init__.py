"""What `bridge inspect` and `bridge ops` show."""
