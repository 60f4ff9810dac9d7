"""Each reader of bytes that mm did not write, fed with samples that were broken by a seed;
docs/development.md.
"""
