"""The parts of tests/bench/run: what to run (target), the sections of the measurement, the report."""
