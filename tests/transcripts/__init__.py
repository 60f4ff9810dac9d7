"""Golden transcripts, played by tests/test_transcripts.py, and the tests of what plays and writes them."""
