"""Figures of the report after those of one paper; they join by the entry point undrift.figures."""
