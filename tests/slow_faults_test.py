#!/usr/bin/env python3
"""kill -9 of any rank, or a stop of the run, at any of 20 random moments: resumes, learns the same."""
import sys

from faults_test import kills_change_nothing, stops_lose_nothing
from program import run_tests


def test_twenty_kills_change_nothing():
    kills = 0
    for seed in range(100, 120):
        kills += kills_change_nothing(4, seed, 100)
        if kills >= 20:
            return
    assert kills >= 20, kills


def test_twenty_stops_lose_no_finished_step():
    stops_lose_nothing(20, 200)


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
