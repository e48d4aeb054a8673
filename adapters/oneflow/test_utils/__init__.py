"""Helpers for tests that were written for OneFlow."""
