"""Helpers of tests written for OneFlow."""
