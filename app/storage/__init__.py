"""Analyses in SQL: who asked for what, how it went, and the snapshot. SQLite by default, PostgreSQL by URL."""
