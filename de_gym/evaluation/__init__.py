"""Compare methods under the paper's protocol: run, store, test, report."""
