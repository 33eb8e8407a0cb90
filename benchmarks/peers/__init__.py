"""Peers: other implementations of the same pages, small and written as their users would write them."""
