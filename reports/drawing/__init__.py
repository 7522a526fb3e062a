"""Figures as SVG: plots, attention maps and bars, with tooltips."""
