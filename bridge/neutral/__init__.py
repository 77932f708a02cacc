"""The neutral graph that both formats are read into and written from."""
