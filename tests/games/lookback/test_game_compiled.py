"""The compiled solver's manners: no allocation, nothing written outside its arrays, the same result on any threads."""

from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
import pytest
from numba.core.runtime import _nrt_python, rtsys
from speed.compiled_loops import play_again
from speed.random_games import random_game as game_of_size

import nashcast as nc
from nashcast.games.lookback.compiled.passes import play, play_on_many_cores
from nashcast.games.lookback.compiled.solve import new_workspace, plan_of, play_arguments
from support.games import random_game, relative


def compiled(game):
    return nc.solve_game(*game.arguments(), **game.settings(), compiled=True)


def solver_arguments(solved, **given):
    """The arguments of `play` for a game that is solved already; given: arrays of the workspace to use."""
    plan = plan_of(solved.problem)
    return play_arguments(solved.problem, plan, new_workspace(solved.problem, plan)._replace(**given))


@pytest.mark.parametrize("noisy", [False, True])
def test_a_small_game_allocates_nothing(noisy):
    game = game_of_size(5, 3, 3, 1, noisy)
    arguments = solver_arguments(compiled(game))
    # Each call from Python wraps its arrays; a thousand games inside one call must add nothing to that.
    assert _allocations(1, arguments) == _allocations(1000, arguments)


def _allocations(games, arguments):
    _nrt_python.memsys_enable_stats()
    try:
        before = rtsys.get_allocation_stats()
        play_again(games, *arguments)
        return rtsys.get_allocation_stats().alloc - before.alloc
    finally:
        _nrt_python.memsys_disable_stats()


CANARY = -1.2345e300


def guarded(shape):
    """An array inside a larger one that is full of a known number."""
    size, margin = int(np.prod(shape)), 64
    block = np.full(size + 2 * margin, CANARY)
    inside = block[margin : margin + size]
    inside[:] = 0.0
    return inside.reshape(shape), lambda: np.all(block[:margin] == CANARY) and np.all(block[-margin:] == CANARY)


@pytest.mark.parametrize("seed", range(30))
def test_nothing_outside_its_arrays_is_touched(seed):
    game = random_game(seed, N=[1, 3, 16, 17, 40][seed % 5])
    solved = compiled(game)
    plan, T = plan_of(solved.problem), len(game.y)
    arrays = {
        "work": guarded((plan.work,)),
        "common": guarded((plan.common,)),
        "decoders": guarded((T, int(plan.agents[-1, 3]))),
        "states": guarded(solved.forecasts.shape),
    }
    arrays["states"][0][0] = solved.forecasts[0]
    status = play(*solver_arguments(solved, **{name: inside for name, (inside, _) in arrays.items()}))
    assert status == -1
    for name, (_, untouched) in arrays.items():
        assert untouched(), name
    assert relative(arrays["states"][0], solved.forecasts) < 1e-12


@pytest.mark.parametrize("noisy", [False, True])
def test_many_agents_give_the_same_on_one_thread_or_more_and_in_both_compilations(noisy):
    game = game_of_size(9001, 3, 2, 1, noisy)
    solved = compiled(game)
    results = []
    threads = numba.get_num_threads()
    try:
        for count in (1, threads):
            numba.set_num_threads(count)
            decoders = np.empty((3, 9001 * 2))
            play_on_many_cores(*solver_arguments(solved, decoders=decoders))
            results.append(decoders)
    finally:
        numba.set_num_threads(threads)
    np.testing.assert_array_equal(results[0], results[1])
    serial = np.empty((3, 9001 * 2))
    play(*solver_arguments(solved, decoders=serial))
    assert relative(serial, results[0]) < 1e-12
    np.testing.assert_array_equal(results[0].reshape(solved.decoders.shape), solved.decoders)


def test_many_agents_are_still_an_equilibrium():
    """Too many for the dense theorem: judged by the certificate, and by first-order conditions of some agents."""
    game = game_of_size(2000, 3, 2, 1, True)
    solved = compiled(game)
    certificate = nc.certify(solved)
    assert np.all(certificate.gains() <= 1e-9 * certificate.costs())
    assert certificate.worst <= 1e-9


@pytest.mark.parametrize("agents", [5, 9001])
def test_several_threads_may_solve_at_once(agents):
    """The compiled code lets other threads run meanwhile; each solution must still be its own."""
    games = [game_of_size(agents, 3, 2, 1, True, seed=seed) for seed in range(4)]
    alone = [compiled(game).decoders for game in games]
    with ThreadPoolExecutor(4) as pool:
        jobs = [pool.submit(compiled, game) for game in games * 10]
        together = [job.result().decoders for job in jobs]
    for place, decoders in enumerate(together):
        np.testing.assert_array_equal(decoders, alone[place % 4])


def test_a_solution_is_not_changed_by_solving_again():
    game = game_of_size(5, 3, 2, 1, True)
    first = compiled(game)
    kept, costs = first.decoders.copy(), nc.certify(first).costs()
    compiled(game._replace(features=2 * game.features))
    np.testing.assert_array_equal(first.decoders, kept)
    np.testing.assert_array_equal(nc.certify(first).costs(), costs)
