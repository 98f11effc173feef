"""Methods of other papers that nobody should take for use: shown beside ours, for comparison."""
