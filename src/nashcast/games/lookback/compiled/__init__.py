"""The look-back game compiled by numba (extra `fast`): sixteen agents in one instruction, all cores. See `solve`."""
