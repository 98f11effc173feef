"""The merging rules of the ablation beside HAM, which undrift has itself."""

ABLATION = ("none", "average", "fisher", "magmax", "ties", "regmean", "ham")
"""The merging rules: the paper's five, and TIES and RegMean, in the order of the table."""
