"""The leakage study: can the task of a test node be read off, and what is that worth?"""
