"""mm under the clients that people use. Each module is skipped with a line if its client is not installed here.

    test_python_sdk   pip install agent-client-protocol     run the tests with that Python
    test_acpx         npm install -g acpx                   with Node.js 22; on the PATH, or $MM_ACPX names it

    python3 -m unittest discover -v -t . -s tests/clients
"""
