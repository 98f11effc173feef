"""What is kept gives something away: attacks that measure it, and an audit of a state."""
