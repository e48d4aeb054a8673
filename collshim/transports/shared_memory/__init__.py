"""Calls and messages between processes of one host, through memory that they share."""
