"""Hub, owners and broker under one seeded scheduler, with a clock of its own: every failure comes back with its seed.

python -m simulation 17        runs seed 17 and tells what happened   (PYTHONPATH=src:tests)
"""
