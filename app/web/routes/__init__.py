"""Routers, one for each resource."""
