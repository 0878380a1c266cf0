"""Secure aggregation: exact sums, masks that hide, keys that cannot be swapped, and a hub that lies."""

import itertools
import logging
import math
import sys
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chisquare

import nashcast as nc
from nashcast.games.lookback.spread import AgentPart, Invitation, ServerPart
from nashcast.remote.masking import masks
from nashcast.remote.masking import rule as mask_rule
from nashcast.remote.masking.masks import MaskedAgent, MaskRefused, MasksDoNotCancel, sum_masked, told
from nashcast.remote.masking.rule import Ledger, least_present, next_present
from nashcast.remote.wire import fixed_point
from nashcast.remote.wire.fixed_point import OutOfRange, add_up, decode, encode, largest
from support.games import random_game, relative

nkeys = pytest.importorskip("nkeys")
pytest.importorskip("cryptography")
MODULUS = 2**128


def whole(limbs):
    return [int(low) | int(high) << 64 for low, high in limbs]


def limbs_of(numbers):
    return np.array([[n % MODULUS & (2**64 - 1), n % MODULUS >> 64] for n in numbers], dtype=np.uint64)


def of_all_sizes(rng, count, lowest=-300, highest=12):
    return rng.choice([-1, 1], count) * 10.0 ** rng.uniform(lowest, highest, count)


def names_of(count):
    return [f"agent-{i:02}" for i in range(count)]


def team(names, seed=0, **settings):
    """Agents that know each other's keys; the keys follow from the seed, so that no test depends on luck."""
    rng = np.random.default_rng(seed)
    private = {name: rng.bytes(32) for name in names}
    public = {name: masks._private(key).public_key().public_bytes_raw() for name, key in private.items()}
    return {
        name: MaskedAgent(
            name, private[name], {n: k for n, k in public.items() if n != name}, federation="power", **settings
        )
        for name in names
    }


def everybody_masks(agents, arrays, step=0, attempt=0, round_name="backward 0", context=b""):
    present = set(agents)
    return {name: a.mask(arrays[name], step, attempt, round_name, present, context) for name, a in agents.items()}


def identity(seed):
    """An nkey's seed and public form."""
    secret = nkeys.encode_seed(np.random.default_rng(seed).bytes(32), nkeys.PREFIX_BYTE_USER)
    return secret.decode(), nkeys.from_seed(secret).public_key.decode()


def test_numbers_become_the_nearest_whole_numbers_of_their_unit():
    rng = np.random.default_rng(0)
    edges = [0.0, -0.0, 5e-324, 2.0**-65, 3 * 2.0**-65, -(2.0**-65), 2.0**-64, 1.0, -1.0, 0.1, 2.0**48]
    edges += [np.nextafter(largest(), 0), -np.nextafter(largest(), 0)]
    values = np.concatenate([of_all_sizes(rng, 3000, -30), of_all_sizes(rng, 500), edges])
    for fraction in (0, 20, 64, 100):
        fitting = values[np.abs(values) < largest(fraction)]
        expected = [round(Fraction(v) * 2**fraction) % MODULUS for v in fitting.tolist()]
        assert whole(encode(fitting, fraction)) == expected


def test_whole_numbers_become_the_nearest_float():
    rng = np.random.default_rng(1)
    sizes = [int.from_bytes(rng.bytes(16), "little") >> int(rng.integers(1, 128)) for _ in range(4000)]
    sizes += [2**53 + 1, 2**64 + 1, 2**117 + 2**64, 2**117 + 2**64 + 1, 2**127 - 1, 0]
    for sign in (1, -1):
        found = decode(limbs_of([sign * n for n in sizes]))
        np.testing.assert_array_equal(found, [sign * n / 2**64 for n in sizes])  # Python rounds this once
    assert decode(limbs_of([-(2**127)])).item() == -(2.0**63)


@pytest.mark.parametrize("terms", [1, 2, 50, 10_000])
def test_sums_keep_their_bound(terms):
    rng = np.random.default_rng(terms)
    values = of_all_sizes(rng, (terms, 8), -6, 9)
    values[:, :4] = np.abs(values[:, :4])
    found = decode(add_up(np.array([encode(row) for row in values])))
    exact = np.array([math.fsum(column) for column in values.T])
    assert (np.abs(found - exact) <= terms * 2.0**-65 + np.abs(exact) * 2.0**-52).all()
    np.testing.assert_allclose(found[:4], values[:, :4].sum(axis=0), rtol=1e-12)


def test_adding_is_modular_and_has_no_order():
    rng = np.random.default_rng(3)
    numbers = [[int.from_bytes(rng.bytes(16), "little") for _ in range(5)] for _ in range(40)]
    terms, minus = np.array([limbs_of(row) for row in numbers]), rng.random(40) < 0.5
    expected = [
        sum(-n if m else n for n, m in zip(column, minus, strict=True)) % MODULUS
        for column in zip(*numbers, strict=True)
    ]
    for _ in range(5):
        order = rng.permutation(40)
        assert whole(add_up(terms[order], minus[order])) == expected
    assert whole(add_up(np.array([add_up(terms[:7]), add_up(terms[7:])]))) == whole(add_up(terms))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e300, -1e300, largest(), -largest()])
def test_a_number_that_does_not_fit_sits_the_game_out(bad, caplog):
    with pytest.raises(OutOfRange, match=r"terms: got .*finite and below 5.6e\+14 in size"):
        encode(np.array([[1.0, bad]]))
    agents = team(names_of(3))
    arrays = {name: [np.array([bad if name == "agent-01" else 1.0])] for name in agents}
    with caplog.at_level(logging.WARNING), pytest.raises(nc.NashcastError):
        everybody_masks(agents, arrays)
    assert "refused: 'agent-01': step 0, attempt 0, backward 0: terms: got" in caplog.text
    arrays["agent-01"] = [np.array([1.0])]
    assert agents["agent-01"].mask(arrays["agent-01"], 0, 0, "backward 0", set(agents))  # nothing had left it


@pytest.mark.parametrize("bad", [-1, 113, 0.5, True, None])
def test_fraction_bits_are_checked(bad):
    with pytest.raises(nc.InvalidInput, match=r"fraction: got .* from 0 to 112"):
        encode(np.ones(1), bad)


@pytest.mark.parametrize("N", [2, 3, 5, 11, 23, 50])
def test_the_hub_gets_the_exact_sums_and_in_any_order(N):
    rng = np.random.default_rng(N)
    agents = team(names_of(N), N, least=2)
    for step in range(6):
        shapes = [tuple(rng.integers(0, 4, rng.integers(0, 4))) for _ in range(rng.integers(1, 5))]
        arrays = {name: [np.asarray(of_all_sizes(rng, shape)) for shape in shapes] for name in agents}
        messages = everybody_masks(agents, arrays, step)
        sums = sum_masked(messages, shapes, set(agents))
        shuffled = {name: messages[name] for name in rng.permutation(list(agents))}
        for place, (shape, found) in enumerate(zip(shapes, sums, strict=True)):
            each = np.array([arrays[name][place] for name in agents])
            exact = np.vectorize(lambda *column: sum(round(Fraction(x) * 2**64) for x in column) / 2**64, otypes="d")
            np.testing.assert_array_equal(found, exact(*each) if found.size else np.zeros(shape))
            assert found.shape == shape
            assert found.tobytes() == sum_masked(shuffled, shapes, set(agents))[place].tobytes()
            assert (np.abs(found - each.sum(axis=0)) <= N * 2.0**-65 + N * 2.0**-52 * np.abs(each).sum(axis=0)).all()


def looks_uniform(*parts):
    counts = np.bincount(np.frombuffer(b"".join(parts), dtype=np.uint8), minlength=256)
    return chisquare(counts).pvalue > 1e-3


def test_all_messages_but_one_look_like_noise():
    agents, size = team(names_of(4)), 4000
    zeros, ones = [np.zeros(size)], [np.full(size, 1e6)]
    arrays = {name: zeros if i < 2 else ones for i, name in enumerate(agents)}
    numbers = {name: sent[masks._TAG :] for name, sent in everybody_masks(agents, arrays).items()}
    limbs = {name: np.frombuffer(sent, dtype="<u8").reshape(-1, 2).copy() for name, sent in numbers.items()}
    for count in (1, 2, 3):
        for some in itertools.combinations(agents, count):
            assert looks_uniform(*(numbers[name] for name in some))
            assert looks_uniform(add_up(np.array([limbs[name] for name in some])).tobytes())
            difference = add_up(np.array([limbs[name] for name in some]), [i % 2 == 1 for i in range(count)])
            assert looks_uniform(difference.tobytes())
    assert not looks_uniform(add_up(np.array(list(limbs.values()))).tobytes())  # the one thing that shows
    means = [limbs[name][:, 1].astype(float).mean() / 2.0**64 for name in agents]
    assert np.abs(np.array(means) - 0.5).max() < 4 / math.sqrt(12 * size)


def test_every_round_has_masks_of_its_own():
    def drawn(names=("a", "b", "c"), seed=0, step=1, attempt=0, round_name="forward 1", context=b"", size=3):
        agent = team(list(names), seed)["a"]
        return agent.mask([np.zeros(size)], step, attempt, round_name, set(names), context)[masks._TAG :]

    base = drawn()
    assert drawn() == base
    others = [
        drawn(step=2), drawn(attempt=1), drawn(round_name="forward 2"), drawn(context=b"x"), drawn(seed=1),
        drawn(names=("a", "b", "d")), drawn(names=("a", "b", "c", "d")), drawn(size=4),
    ]  # fmt: skip
    words = [message[i : i + 16] for message in [base, *others] for i in range(0, len(message), 16)]
    assert len(set(words)) == len(words)  # no position of any of them repeats


def test_a_pairs_secret_is_of_this_federation_and_these_names_only():
    (own, peer), secrets = (team(["a", "b"], seed) for seed in (0, 1)), set()
    keys = {name: agent._private.public_key().public_bytes_raw() for name, agent in peer.items()}
    for federation in ("power", "heat"):
        for name in ("a", "c", "ab"):
            private = own["a"]._private.private_bytes_raw()
            agent = MaskedAgent(name, private, {"b": keys["b"], "bc": keys["b"], "d": keys["a"]}, federation=federation)
            secrets |= set(agent._pairs.values())
    assert len(secrets) == 18


def test_no_key_and_nonce_are_ever_used_twice(monkeypatch):
    drawn, keystream, who = [], masks._keystream, ""

    def recorded(key, nonce, length):
        drawn.append((who, key, nonce))
        return keystream(key, nonce, length)

    monkeypatch.setattr(masks, "_keystream", recorded)
    rng, names, refused = np.random.default_rng(5), names_of(8), 0
    sets, rounds = [set(names), set(names), set(names[:5])], ["backward 0", "backward 1", "forward"]
    agents = team(names)
    for step in range(60):
        if step == 30:  # everybody is started anew, with a new key
            agents = team(names, 1)
        for attempt, round_name in zip(rng.integers(3, size=12), rng.choice(rounds, 12), strict=True):
            for who in sorted(sets[attempt]):
                try:
                    agents[who].mask([rng.standard_normal(2)], step - step // 30, attempt, round_name, sets[attempt])
                except MaskRefused:
                    refused += 1
    assert refused > 1000
    assert len(set(drawn)) == len(drawn) > 5000
    pads = {}
    for name, *pad in drawn:
        pads.setdefault(tuple(pad), set()).add(name)
    assert max(map(len, pads.values())) == 2  # the two who share it


def test_known_answers():
    """RFC 5869 case 3, RFC 8439 A.1 cases 1, 2 and 5, RFC 7748 section 5.2."""
    okm = "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d"
    assert masks._derived(bytes([0x0B] * 22), b"").hex() == okm
    blocks = (
        "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"
        "da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586"
        "9f07e7be5551387a98ba977c732d080dcb0f29a048e3656912c6533e32ee7aed"
        "29b721769ce64e43d57133b074d839d531ed1f28510afb45ace10a1f4b794d6f"
    )
    assert masks._keystream(bytes(32), bytes(12), 128).hex() == blocks
    block = "c2c64d378cd536374ae204b9ef933fcd1a8b2288b3dfa49672ab765b54ee27c7"
    assert masks._keystream(bytes(32), bytes(11) + b"\x02", 32).hex() == block
    scalar = bytes.fromhex("a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4")
    point = bytes.fromhex("e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c")
    secrets = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(masks, "_derived", lambda secret, bound_to: secrets.append(secret.hex()) or bound_to)
        MaskedAgent("a", scalar, {"b": point}, federation="power")
    assert secrets == ["c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552"]


def test_a_signed_key_is_accepted_from_its_owner_only(tmp_path, caplog):
    (seed_a, nkey_a), (seed_b, nkey_b), (seed_hub, _) = identity(1), identity(2), identity(3)
    page = tmp_path / "enrolled.toml"
    page.write_text(f'[agents]\nnorth = "{nkey_a}"\nsouth = "{nkey_b}"\n')
    enrolled = masks.read_enrolled(page)
    key, other = masks.new_key(), masks.new_key()
    north = masks.sign_key("power", "north", key, seed_a)
    south = masks.sign_key("power", "south", other, seed_b)
    assert masks.verify_key(north, "power", enrolled) == north.public_key != south.public_key
    refused = {
        "signed by the hub": masks.sign_key("power", "north", other, seed_hub),
        "unsigned": north._replace(signature=b""),
        "a signature of zeros": north._replace(signature=bytes(64)),
        "the key exchanged": north._replace(public_key=south.public_key),
        "the name exchanged": north._replace(name="south"),
        "key and signature of another": south._replace(name="north"),
        "of another federation": masks.sign_key("heat", "north", key, seed_a),
        "nobody enrolled": masks.sign_key("power", "west", other, seed_hub),
    }
    for what, forged in refused.items():
        with caplog.at_level(logging.WARNING), pytest.raises(MaskRefused, match=f"the key of '{forged.name}': "):
            masks.verify_key(forged, "power", enrolled)
        assert f"refused: the key of '{forged.name}'" in caplog.text, what
        caplog.clear()
    with pytest.raises(UnicodeDecodeError):  # a broker can have texts signed, never this
        masks._statement("power", "north", b"k" * 32).decode()


@pytest.mark.parametrize("public", [bytes(32), b"\x01" + bytes(31), b"short"])
def test_a_key_that_agrees_on_nothing_is_refused(public):
    with pytest.raises(MaskRefused, match="the key of 'b': it is no X25519 key"):
        MaskedAgent("a", masks.new_key(), {"b": public}, federation="power")


def test_bad_settings_say_what_to_pass(tmp_path, monkeypatch):
    page, nkey = tmp_path / "enrolled.toml", identity(1)[1]
    changed = ("B" if nkey[5] == "A" else "A").join([nkey[:5], nkey[6:]])
    contents = {
        'north = "U"': "table .agents.",
        "agents = 3": "table .agents.",
        '[agents]\nnorth = "UABC"': "U and 55 more",
        f'[agents]\nnorth = "{changed}"': "U and 55 more",
        f'[agents]\nnorth = "{nkey}"\nsouth = "{nkey}"': "one nkey under two names",
    }
    for text, words in contents.items():
        page.write_text(text)
        with pytest.raises(nc.InvalidInput, match=rf"enrolled.*: got .*{words}"):
            masks.read_enrolled(page)
    with pytest.raises(nc.InvalidInput, match=r"enrolled: got .*FileNotFoundError"):
        masks.read_enrolled(tmp_path / "nowhere.toml")
    with pytest.raises(nc.InvalidInput, match=r"seed: got nkeys: invalid seed. Pass"):
        masks.sign_key("power", "north", masks.new_key(), "SUNONE")
    with pytest.raises(nc.InvalidInput, match="private_key: got 5 bytes"):
        MaskedAgent("a", b"short", {}, federation="power")
    for setting, value in (("least", 1), ("attempts", 0), ("after", -2)):
        with pytest.raises(nc.InvalidInput, match=f"{setting}: got .*whole number ≥"):
            team(names_of(3), **{setting: value})
    with pytest.raises(nc.InvalidInput, match=r"terms: got 16385 of them. Add up at most 16384"):
        add_up(np.zeros((16385, 1, 2), dtype=np.uint64))

    masks._needed.cache_clear()
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.asymmetric.x25519", None)
    with pytest.raises(nc.InvalidInput, match=r"got no package cryptography. .*pip install 'nashcast\[remote\]'"):
        MaskedAgent("a", masks.new_key(), {}, federation="power")


def test_messages_of_another_round_or_set_are_found_out():
    agents = team(names_of(5))
    arrays = {name: [np.ones(2)] for name in agents}
    old = everybody_masks(agents, arrays, 0)
    new = everybody_masks(agents, arrays, 1)
    present, shapes = set(agents), [(2,)]
    assert sum_masked(new, shapes, present)[0].tolist() == [5, 5]
    for name in agents:
        with pytest.raises(MasksDoNotCancel, match=f"of the others: {name}."):
            sum_masked({**new, name: old[name]}, shapes, present)
        with pytest.raises(MasksDoNotCancel, match=f"one message from each agent present; look at {name}"):
            sum_masked({n: m for n, m in new.items() if n != name}, shapes, present)
        disguised = {**new, name: new[name][: masks._TAG] + old[name][masks._TAG :]}
        with pytest.raises(MasksDoNotCancel, match="masks do not cancel"):
            sum_masked(disguised, shapes, present)
    with pytest.raises(MasksDoNotCancel, match="of the others"):
        sum_masked(new, [(3,)], present)
    with pytest.raises(MasksDoNotCancel, match="one message from each agent present"):
        sum_masked({}, shapes, set())
    told_of_more, told_of_less = (
        {**new, "agent-03": team(names_of(6))["agent-03"].mask([np.ones(2)], 1, 0, "backward 0", set(names_of(count)))}
        for count in (6, 4)
    )
    for messages in (told_of_more, told_of_less):
        with pytest.raises(MasksDoNotCancel, match="of the others: agent-03"):
            sum_masked(messages, shapes, present)
    impostor = team(names_of(5), seed=9)["agent-03"]
    with pytest.raises(MasksDoNotCancel, match="masks do not cancel"):
        sum_masked({**new, "agent-03": impostor.mask([np.ones(2)], 1, 0, "backward 0", present)}, shapes, present)


ALL = frozenset(names_of(9))
REFUSED = [
    ((3, 0, "a", ALL), "step 3 is over"),
    ((5, 3, "a", ALL), "only 3 attempts"),
    ((6, 0, "a", frozenset(names_of(2))), "a sum over 2 agents hides too little; it takes 3"),
    ((5, 1, "a", ALL - {"agent-08"}), "it leaves out 1 of the agents, whose terms would show; leave out at least 3"),
    ((5, 1, "a", frozenset(names_of(4))), "no more than half of the step's 9 agents"),
    ((5, 1, "a", ALL | {"agent-09"}), "somebody joined"),
    ((5, 0, "b", frozenset(names_of(6))), "another set of agents was present in this attempt"),
    ((5, 0, "a", ALL), "sent before, and a mask is used once"),
    ((5, 1, "a", ALL | {"hub"}), "no verified key of hub"),
    ((5, 1, "a", ALL - {"agent-00"}), "not among those present"),
]


@pytest.mark.parametrize(("asked", "words"), REFUSED)
def test_an_agent_refuses_with_a_reason_and_goes_on(asked, words, caplog):
    agent, terms = team(names_of(10))["agent-00"], [np.ones(1)]
    agent.mask(terms, 5, 0, "a", ALL)
    with caplog.at_level(logging.WARNING), pytest.raises(MaskRefused, match=words):
        agent.mask(terms, *asked)
    assert f"refused: 'agent-00': step {asked[0]}, attempt {asked[1]}, {asked[2]}: " in caplog.text
    agent.mask(terms, 5, 0, "b", ALL)
    agent.mask(terms, 5, 1, "a", ALL)  # everybody again, with new masks
    agent.mask(terms, 5, 2, "a", frozenset(names_of(6)))
    with pytest.raises(MaskRefused, match="attempt 1 is over"):
        agent.mask(terms, 5, 1, "b", ALL)
    agent.mask(terms, 6, 0, "a", ALL - {"agent-08"})


def test_an_agent_started_anew_leaves_the_steps_it_may_have_sent_alone():
    agent = team(names_of(3), after=7)["agent-00"]
    with pytest.raises(MaskRefused, match="step 7 is over"):
        agent.mask([np.ones(1)], 7, 0, "a", set(names_of(3)))
    assert agent.mask([np.ones(1)], 8, 0, "a", set(names_of(3)))


def opened(names, least, story):
    """The sets whose sum a hub can open that asks in this order: attempt, who is said to be present, who is told so."""
    ledgers, agreed = {name: Ledger(least) for name in names}, {}
    for attempt, present, asked in story:
        for name in asked:
            if not ledgers[name].admit(0, attempt, "a", frozenset(present)):
                agreed.setdefault((attempt, frozenset(present)), set()).add(name)
    return {present for (_, present), members in agreed.items() if members == present}


def shows_fewer_than(least, names, sets):
    """Whether some combination of these sets' sums depends on fewer than `least` agents."""
    rows = np.array([[name in present for name in names] for present in sets], dtype=float).reshape(-1, len(names))
    groups = [list(g) for size in range(1, least) for g in itertools.combinations(range(len(names)), size)]
    rest = np.array([np.where(np.isin(range(len(names)), group), 0.0, rows) for group in groups])
    return bool(len(rows)) and (np.linalg.matrix_rank(rest) < np.linalg.matrix_rank(rows)).any()


def lies(rng, names):
    known = [sorted(names)]
    for _ in range(rng.integers(2, 12)):
        base = known[rng.integers(len(known))]
        present = sorted(rng.choice(base, rng.integers(1, len(base) + 1), replace=False).tolist())
        known.append(present)
        yield int(rng.integers(3)), present, [name for name in present if rng.random() < 0.7] or present
        yield int(rng.integers(3)), present, present


@pytest.mark.parametrize(("N", "least"), [(5, 2), (7, 2), (9, 2), (10, 3)])
def test_a_hub_that_lies_about_who_is_there_learns_no_sum_over_fewer_than_least(N, least):
    rng, names, several = np.random.default_rng(N), names_of(N), 0
    for _ in range(600):
        sets = opened(names, least, lies(rng, names))
        several += len(sets) > 1
        assert not shows_fewer_than(least, names, sets)
    assert several > 4


def no_rule(tried, present, least):
    return ""


def without_the_half(tried, present, least):
    return "" if not tried or (present < tried[-1] and len(tried[-1]) - len(present) >= least) else "no"


def half_of_the_last(tried, present, least):
    return without_the_half(tried, present, least) or ("no" if tried and 2 * len(present) <= len(tried[-1]) else "")


NINE = names_of(9)
LIES = [
    (no_rule, [(0, NINE, NINE), (1, NINE[1:], NINE[1:])]),
    (without_the_half, [(0, NINE, NINE), (1, NINE[:4], NINE[:4]), (1, NINE[5:], NINE[5:])]),
    (
        half_of_the_last,
        [(0, NINE, NINE)]
        + [(attempt, NINE[: 8 - 2 * attempt], NINE[:4]) for attempt in (1, 2)]
        + [(attempt, NINE[1 + 2 * attempt :], NINE[5:]) for attempt in (1, 2)],
    ),
]


@pytest.mark.parametrize(("weaker", "story"), LIES)
def test_every_clause_of_the_rule_is_needed(weaker, story, monkeypatch):
    assert opened(NINE, 2, story) == {frozenset(NINE)}
    monkeypatch.setattr(mask_rule, "_why_not", weaker)
    assert shows_fewer_than(2, NINE, opened(NINE, 2, story))


def test_who_plays_on_when_some_are_gone():
    names = frozenset(names_of(9))
    kept = [next_present([names], {"agent-04"}, step) or frozenset() for step in range(40)]
    assert all(len(present) == 6 and "agent-04" not in present for present in kept)
    assert set.union(*(set(names - present) for present in kept)) == names  # it is not always the same ones who wait
    assert next_present([names], set(), 0) == names
    assert next_present([names], set(names_of(4)), 0) == names - set(names_of(4))
    assert next_present([names], set(names_of(5)), 0) is None
    assert next_present([names, names, names], set(), 0) is None
    assert next_present([names, kept[0]], {min(kept[0])}, 0) is None
    assert next_present([frozenset(names_of(6))], {"agent-00"}, 0) is None
    assert next_present([frozenset(names_of(7))], {"agent-00"}, 0) is not None


class Dropout(Exception):
    pass


def parts_of(game, names, present):
    noisy, parts = game.cov is not None, {}
    for i, name in enumerate(names):
        if name in present:
            moments = (game.mean[i], game.cov[i]) if noisy else (None, None)
            invitation = Invitation(game.y, np.ascontiguousarray(game.w[:, i]), game.start[0], noisy)
            parts[name] = AgentPart(game.Z[i], *moments, game.gamma[i], game.alpha[i], invitation)
    return parts


def play(parts, weights, add, tell=lambda *arrays: None):
    """A spread game; `add` gives the sums over agents of the arrays each of them sends.

    weights: of all agents, (lookback, agents).
    """
    server = ServerPart()
    for back in range(len(weights)):
        sums = add(f"backward {back}", {name: part.backward(back) for name, part in parts.items()})
        carry, shift, _ = server.solve(back, *sums[:2])
        tell(carry, shift, *sums[2:])
        for part in parts.values():
            part.receive(back, carry, shift, *sums[2:])
    for part in parts.values():
        part.play(weights.sum(axis=1))
    return {name: (part.forecasts.copy(), part.decoders.copy()) for name, part in parts.items()}


def plainly(round_name, terms):
    return [np.add.reduce(parts) for parts in zip(*terms.values(), strict=True)]


class Masked:
    """Adds up under masks. gone: who does not send, and in which round.   lied_to: who is told something else."""

    def __init__(self, agents, step, attempt, gone=None, lied_to=None):
        self.agents, self.step, self.attempt, self.gone, self.lied_to = agents, step, attempt, gone or {}, lied_to
        self.context, self.rounds = dict.fromkeys(agents, b""), []

    def tell(self, *arrays):
        for name, before in self.context.items():
            heard = [2 * a for a in arrays] if name == self.lied_to else arrays
            self.context[name] = told(*heard, before=before)

    def add(self, round_name, terms):
        self.rounds.append(round_name)
        messages = {
            name: self.agents[name].mask(list(own), self.step, self.attempt, round_name, set(terms), self.context[name])
            for name, own in terms.items()
            if round_name not in self.gone.get(name, ())
        }
        missing = set(terms) - set(messages)
        if missing:
            raise Dropout(missing)
        return sum_masked(messages, [a.shape for a in next(iter(terms.values()))], set(terms))


@pytest.mark.parametrize(
    ("N", "T", "p", "noisy"), [(3, 1, 1, False), (5, 3, 1, True), (8, 4, 2, False), (20, 3, 2, True)]
)
def test_a_game_under_masks_is_the_game(N, T, p, noisy):
    names = names_of(N)
    game = random_game(N, N=N, p=p, T=T, noisy=noisy, prior=False)
    agents = team(names)
    for step in range(2):
        masked = Masked(agents, step, 0)
        found = play(parts_of(game, names, names), game.w, masked.add, masked.tell)
        expected = play(parts_of(game, names, names), game.w, plainly)
        assert len(masked.rounds) == T
        for name in names:
            for a, b in zip(found[name], expected[name], strict=True):
                assert relative(a, b) <= 1e-12


ROUNDS = [f"backward {back}" for back in range(3)]


@pytest.mark.parametrize("when", ROUNDS)
def test_a_game_goes_on_without_those_who_drop_out(when):
    names, T, p = names_of(9), 3, 1
    game, agents = random_game(4, N=9, p=p, T=T, noisy=True, prior=False), team(names)
    masked = Masked(agents, 7, 0, gone={"agent-05": {when}})
    with pytest.raises(Dropout) as lost:
        play(parts_of(game, names, names), game.w, masked.add, masked.tell)
    (missing,) = lost.value.args
    assert missing == {"agent-05"}
    with pytest.raises(MaskRefused, match="leaves out 1 of the agents"):  # what would show the missing one's terms
        play(parts_of(game, names, ALL - missing), game.w, Masked(agents, 7, 1).add)
    kept = next_present([set(names)], missing, 7)
    assert kept is not None
    again = Masked(agents, 7, 1)
    found = play(parts_of(game, names, kept), game.w[:, [n in kept for n in names]], again.add, again.tell)
    expected = play(parts_of(game, names, kept), game.w[:, [n in kept for n in names]], plainly)
    assert found.keys() == kept
    assert again.rounds == ROUNDS
    for name in kept:
        assert relative(found[name][0], expected[name][0]) <= 1e-12
    back = Masked(agents, 8, 0)  # the next step is played by all again
    assert play(parts_of(game, names, names), game.w, back.add, back.tell).keys() == set(names)


def test_an_agent_that_is_told_other_sums_is_not_added_up():
    names, game = names_of(5), random_game(4, N=5, p=1, T=3, noisy=False, prior=False)
    masked = Masked(team(names), 0, 0, lied_to="agent-02")
    with pytest.raises(MasksDoNotCancel, match="of the others: agent-02"):
        play(parts_of(game, names, names), game.w, masked.add, masked.tell)
    assert masked.rounds == ["backward 0", "backward 1"]


def test_a_hub_that_gives_nobody_else_weight_sees_one_agents_terms():
    """What masks do not prevent, and why agents should be told all weights."""
    names, game = names_of(8), random_game(4, N=8, p=1, T=3, noisy=False, prior=False)
    game.w[:, 1:] = 0.0
    masked, own = Masked(team(names), 0, 0), []

    def add(round_name, terms):
        own.append((terms["agent-00"][0], masked.add(round_name, terms)[0]))
        return [own[-1][1], *plainly(round_name, terms)[1:]]

    play(parts_of(game, names, names), game.w, add, masked.tell)
    for term, total in own[:3]:
        np.testing.assert_allclose(total, term, rtol=1e-12)


@pytest.mark.parametrize(("N", "shown"), [(2, True), (3, True), (4, False)])
def test_sums_over_no_more_agents_than_the_look_back_show_every_term(N, shown):
    """Masks or not: the hub knows which vector each agent's term of F is a multiple of, and solves for the rest."""
    names, T = names_of(N), 3
    game = random_game(3, N=N, p=1, T=T, noisy=False, prior=False)
    carries, sums, terms = [np.zeros((0, 0))], [], []

    def add(round_name, sent):
        terms.append([own[0] for own in sent.values()])
        sums.append(plainly(round_name, sent))
        return sums[-1]

    play(parts_of(game, names, names), game.w, add, lambda *arrays: carries.append(arrays[0]))
    b = np.vstack([carries[T - 1] @ game.w[1:][::-1], game.w[0]])
    found = np.linalg.lstsq(b, sums[T - 1][0], rcond=None)[0]
    errors = [relative(np.outer(b[:, i], found[i]), terms[T - 1][i]) for i in range(N)]
    assert (max(errors) < 1e-9) == shown
    assert least_present(T) > T


def shown_of_one(N, T, noisy):
    """How many private numbers of one agent the sums of a game pin down, to first order (y_dim 1)."""
    rng, names, p = np.random.default_rng(N), names_of(N), 1
    game = random_game(N, N=N, p=p, T=T, sizes=[1] * N, noisy=noisy, prior=False, alpha_range=(0.0, 0.5))
    private = rng.uniform(0.5, 1.5, (3 if noisy else 1, N, T))

    def seen(numbers):
        blocks = [[np.ascontiguousarray(own.reshape(T, p, 1)) for own in kind] for kind in numbers]
        noise = [c.reshape(T, 1, 1, 1, 1) for c in blocks[1]] if noisy else None
        played = game._replace(Z=blocks[0], cov=noise, mean=blocks[2] if noisy else None)
        played, all_sums = played._replace(start=np.repeat(game.start[:1], N, axis=0)), []

        def add(round_name, terms):
            sums = plainly(round_name, terms)
            all_sums.extend(a.ravel() for a in sums)
            return sums

        play(parts_of(played, names, names), played.w, add)
        return np.concatenate(all_sums)

    slopes = []
    for i in np.ndindex(private.shape):
        up, down = private.copy(), private.copy()
        up[i] += 1e-5
        down[i] -= 1e-5
        slopes.append((seen(up) - seen(down)) / 2e-5)
    slopes = np.array(slopes)
    slopes /= np.abs(slopes).max(axis=0) + 1e-300
    others = slopes[[i[1] != 0 for i in np.ndindex(private.shape)]]
    return np.linalg.matrix_rank(slopes, tol=1e-7) - np.linalg.matrix_rank(others, tol=1e-7)


@pytest.mark.parametrize(("T", "least"), [(1, 3), (2, 4), (3, 6), (4, 9)])
def test_from_how_many_agents_on_sums_show_nothing_of_one(T, least):
    assert least_present(T) == least
    assert shown_of_one(least, T, False) == 0
    if T > 1:
        assert shown_of_one(least - 1, T, False) > 0


@pytest.mark.parametrize("T", [2, 3])
def test_with_random_features_it_takes_more(T):
    assert least_present(T, noisy=True) > least_present(T)
    assert shown_of_one(least_present(T, noisy=True), T, True) == 0
    assert shown_of_one(3, T, True) > 0


def test_the_numbers_in_the_sums_are_counted_as_they_are_sent():
    for T, p in ((1, 1), (3, 2), (4, 1)):
        names, counts = names_of(2), []

        def add(round_name, terms, counts=counts):
            counts.append([a.size for a in plainly(round_name, terms)])
            return plainly(round_name, terms)

        game = random_game(1, N=2, p=p, T=T, noisy=True, prior=False)
        play(parts_of(game, names, names), game.w, add)
        *others, surprises = np.sum(counts, axis=0)
        numbers, more = T * p * (p + 1) // 2, (T - 1) * p * p  # of one agent, without and with what surprises have
        bounds = np.ceil([sum(others) / numbers, (sum(others) + surprises) / (numbers + more)])
        assert least_present(T, p, noisy=True) == max(3, *(bounds + 1))


def test_the_largest_sum_that_may_happen_does_not_wrap():
    largest_number = np.nextafter(largest(), 0)
    for sign in (1, -1):
        terms = np.broadcast_to(encode(np.array([sign * largest_number])), (fixed_point.MOST_TERMS, 1, 2))
        assert decode(add_up(terms.copy())).item() == sign * largest_number * fixed_point.MOST_TERMS
