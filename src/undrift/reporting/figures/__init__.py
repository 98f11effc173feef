"""Figures of finished runs; each file draws one."""
