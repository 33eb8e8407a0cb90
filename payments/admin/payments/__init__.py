"""Payments in the admin: the list, its search and exports, and the page of a payment."""
