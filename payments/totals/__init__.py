"""Sums of payments for people who close a month: by day, by period, and as a report."""
