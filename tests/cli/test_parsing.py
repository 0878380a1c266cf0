"""The command line as a whole: misspelt words, abbreviations, errors as JSON, colours, and defaults that help names."""

import inspect
import io
import json
import re
import subprocess
import sys
from importlib.util import find_spec

import pytest

from nashcast.agents.lookback.paper_agent import PaperAgent
from nashcast.cli.main import main, parser
from nashcast.cli.shared import colours
from nashcast.cli.shared.checkout import from_checkout
from nashcast.cli.shared.parsing import Parser
from support.extras import skip_if


def every_parser():
    return [*parser().walk(), *from_checkout("benchmarks", "speed.command").parser().walk()]


def options():
    """Every argument of every command, with the command's words."""
    return [
        (each.prog, action)
        for each in every_parser()
        for action in each._actions
        if not isinstance(action.choices, dict) and action.dest != "help"
    ]


def misuse(capsys, *words):
    with pytest.raises(SystemExit) as stopped:
        main(words)
    assert stopped.value.code == 2
    return capsys.readouterr().err


def test_without_a_command_the_help_is_shown(capsys):
    assert main([]) == 0
    page = capsys.readouterr()
    assert page.out.startswith("usage: nashcast")
    assert page.err == ""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["rnu"], "nashcast: unknown command 'rnu'. Did you mean 'run'? Commands: demo, data, run"),
        (
            ["data", "lst"],
            "nashcast data: unknown command 'lst'. Did you mean 'list'? Commands: list, fetch, add, show",
        ),
        (["serve", "token", "ad"], "nashcast serve token: unknown command 'ad'. Did you mean 'add'?"),
        (["zzz"], "nashcast: unknown command 'zzz'. Commands: demo"),
        (["run", "f.toml", "--ouput=x"], "nashcast run: unrecognized arguments: --ouput=x. Did you mean '--output'"),
        (["run", "f.toml", "--zzzz"], "unrecognized arguments: --zzzz\n"),
        (["bench", "game", "--larges", "10000"], "unrecognized arguments: --larges 10000. Did you mean '--largest'?"),
    ],
)
def test_misspelt_words_get_a_suggestion(capsys, words, said):
    page = misuse(capsys, *words)
    assert said in page
    assert page.startswith("usage: nashcast")


def test_no_parser_takes_abbreviations(capsys):
    assert "unrecognized arguments: --form md" in misuse(capsys, "report", "x", "--form", "md")
    assert "unrecognized arguments: --out x" in misuse(capsys, "run", "f.toml", "--out", "x")
    for each in every_parser():
        assert isinstance(each, Parser), each.prog
        assert not each.allow_abbrev, each.prog


def test_one_option_names_the_folder_of_results():
    names = {name for _, action in options() for name in action.option_strings}
    assert "--output" in names
    assert not names & {"--out", "--out-dir", "--output-dir", "--outdir", "-o"}
    serve = next(each for each in every_parser() if each.prog == "nashcast serve")
    assert "--no-auth" in serve.format_help()
    assert "--open" not in serve.format_help()


@pytest.mark.parametrize(
    ("words", "code", "kind", "said"),
    [
        (["run", "nowhere.toml", "--json"], 1, "InvalidInput", "nowhere.toml (No such file or directory)"),
        (["demo", "--steps", "soon", "--json"], 2, "Misuse", "argument --steps: invalid int value: 'soon'"),
        (["data", "lst", "--json"], 2, "Misuse", "unknown command 'lst'. Did you mean 'list'?"),
        (["serve", "token", "add", "--json"], 2, "Misuse", "the following arguments are required: NAME"),
        (["certs", "a", "b", "c", "--json"], 2, "Misuse", "use one of the six forms above"),
    ],
)
def test_with_json_an_error_is_json_with_the_same_exit_code(capsys, words, code, kind, said):
    def exit_code(arguments):
        try:
            return main(arguments)
        except SystemExit as stopped:
            return stopped.code

    assert exit_code(words) == code
    page = capsys.readouterr()
    found = json.loads(page.err)
    assert found.keys() == {"error", "type", "exit_code"}
    assert (found["type"], found["exit_code"]) == (kind, code)
    assert said in found["error"]
    assert page.out == ""
    assert exit_code([word for word in words if word != "--json"]) == code
    assert said in capsys.readouterr().err


def test_an_interrupt_with_json_is_json(capsys, monkeypatch):
    def interrupted(chosen):
        raise KeyboardInterrupt

    monkeypatch.setattr("nashcast.cli.data.run_list", interrupted)
    assert main(["data", "list", "--json"]) == 130
    assert json.loads(capsys.readouterr().err)["exit_code"] == 130


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("stream", "environment", "shown"),
    [
        (Terminal(), {}, True),
        (Terminal(), {"NO_COLOR": ""}, True),
        (Terminal(), {"NO_COLOR": "1"}, False),
        (Terminal(), {"TERM": "dumb"}, False),
        (io.StringIO(), {}, False),
    ],
)
def test_colours_are_for_terminals_that_want_them(monkeypatch, stream, environment, shown):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert colours.coloured(stream) == shown
    assert colours.paint("x", colours.RED, stream) == ("\x1b[31mx\x1b[0m" if shown else "x")
    page = parser().format_help()
    painted = colours.help_page(page, stream)
    assert ("\x1b[1musage:\x1b[0m" in painted) == shown
    assert ("\x1b[36m-h, --help\x1b[0m" in painted) == shown
    assert re.sub(r"\x1b\[\d+m", "", painted) == page


def test_help_errors_and_titles_are_coloured_on_a_terminal_and_plain_elsewhere(monkeypatch, capsys):
    assert "\x1b" not in misuse(capsys, "rnu")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stdout", Terminal())
    monkeypatch.setattr(sys, "stderr", Terminal())
    with pytest.raises(SystemExit):
        main(["rnu"])
    assert "\x1b[31mnashcast:\x1b[0m unknown command" in sys.stderr.getvalue()
    assert main([]) == 0
    assert "\x1b[1moptions:\x1b[0m" in sys.stdout.getvalue()
    assert colours.title("\nhead\nrow") == "\n\x1b[1mhead\x1b[0m\nrow"


def test_completion_names_its_extra_where_shtab_is_missing(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert main(["completion", "bash"]) == 1
    assert "no package shtab. Install it: pip install 'nashcast[completion]'." in capsys.readouterr().err


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_completion_knows_every_command_and_option(shell, capsys):
    skip_if("" if find_spec("shtab") else "needs shtab")
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    for each in parser().walk():
        if not each.prog.startswith("nashcast serve token"):
            for name in (name for action in each._actions for name in action.option_strings):
                assert name in script, f"{each.prog} {name}"
    assert main(["completion", shell, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["script"] + "\n" == script


@pytest.mark.parametrize(
    ("words", "offered"),
    [("nashcast ev", {"evaluate"}), ("nashcast data f", {"fetch"}), ("nashcast sweep --post", {"--post-hoc"})],
)
def test_bash_completes_words(words, offered, capsys, tmp_path):
    skip_if("" if find_spec("shtab") else "needs shtab")
    assert main(["completion", "bash"]) == 0
    (tmp_path / "script").write_text(capsys.readouterr().out)
    ask = f"source ./script; COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); "
    # bash calls it with the command, the word to complete, and the word before.
    ask += "_shtab_nashcast nashcast ${COMP_WORDS[-1]} ${COMP_WORDS[-2]}; printf '%s\\n' \"${COMPREPLY[@]}\""
    said = subprocess.run(["bash", "-c", ask], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert {line.strip() for line in said.stdout.splitlines()} == offered


# What help says where the parser's own default is None, beside where the value comes from.
def called():
    from nashcast.cli import demo
    from nashcast.cli.elsewhere import join
    from nashcast.cli.service import serve
    from nashcast.evaluation.declared import LAGS
    from nashcast.evaluation.evaluate import SEEDS
    from nashcast.paper.settings import SEEDS as PAPER_SEEDS
    from nashcast.remote.broker.certificates.certs import AUTHORITY_DAYS, DAYS

    agent = {name: each.default for name, each in inspect.signature(PaperAgent).parameters.items()}
    federated = from_checkout("examples", "demos.federated")
    tokens = f"{serve.TOKENS} in the journal's folder"
    serving = ("", " token add", " token list", " token revoke")
    return {("nashcast serve" + words, "token_file"): tokens for words in serving} | {
        ("nashcast agent", "state"): f"none; join: NAME{join.STATE} in its folder",
        ("nashcast agent", "log"): f"none; join: {join.LOG} in its folder",
        ("nashcast agent", "ridge"): f"{agent['ridge']:g}",
        ("nashcast agent", "decay"): f"{agent['decay']:g}",
        ("nashcast agent", "window"): f"{agent['window']}",
        ("nashcast agent", "forgetting"): str(agent["forgetting"]).lower(),
        ("nashcast certs", "days"): f"{DAYS}; rotate: {AUTHORITY_DAYS}",
        ("nashcast demo", "steps"): f"{demo.STEPS}; with --federated: {federated.STEPS}",
        ("nashcast evaluate", "lags"): f"{LAGS}",
        ("nashcast evaluate", "seeds"): f"{SEEDS[0]}-{SEEDS[-1]}; with --private: {SEEDS[0]}",
        ("nashcast reproduce", "seeds"): f"{PAPER_SEEDS[0]}-{PAPER_SEEDS[-1]}",
    }


# Defaults that are no value but a rule; what each says is tested with its command.
RULES = {
    "all", "all of the stream, or as the file says", "any free port", "below runs/, by the name in the file",
    "current folder", "evaluation; with --private: private-evaluation", "its last column",
    "localhost, this machine only",
    "name of the folder", "NAME", "NASHCAST_DATA, or the user's data folder", "never", "no TLS", "none",
    "none, rows are one step apart", "one for each core", "taken from the file name", "the commonest", "the file's",
    "the last undamaged one",
    "the one with the file's name, or the only one", "the newest", "the oldest in the journal", "the only one",
    "the record's own folder", "this machine", "unchanged, or localhost, 127.0.0.1, ::1", "`default_agents`",
    "1, or that of the file of --agents", "joint game: joint with --trusted, else forecasts; look-back game: sums",
}  # fmt: skip


def test_every_default_that_help_names_is_the_one_used():
    from_functions, seen = called(), set()
    for prog, action in options():
        named = re.findall(r"\(default: ([^()]*(?:\([^()]*\)s[^()]*|\([^()]*\)g[^()]*)?)\)", action.help or "")
        if (prog, action.dest) in from_functions:
            seen.add((prog, action.dest))
            assert action.default is None, f"{prog} {action.dest}: its default is the parser's: use %(default)s"
            assert named == [from_functions[prog, action.dest]], f"{prog} {action.dest}"
        elif named and "%(default)" in named[0]:
            assert action.default is not None, f"{prog} {action.dest}"
        elif named and isinstance(action.default, list | tuple) and action.default:
            assert re.split("[ ,]", named[0]) == [str(each) for each in action.default], f"{prog} {action.dest}"
        elif named:
            assert named[0] in RULES, f"{prog} {action.dest} names the default {named[0]!r}: from where?"
            assert action.default in (None, [], ".", 0), f"{prog} {action.dest}: use %(default)s"
    assert seen == from_functions.keys()


def test_every_value_that_is_used_unless_given_is_named_in_help():
    for prog, action in options():
        if action.default not in (None, False, [], "==SUPPRESS=="):
            assert "(default: " in (action.help or ""), f"{prog} {action.dest}: {action.default!r}"


def test_help_uses_one_form():
    for prog, action in options():
        assert action.help, f"{prog} {action.dest} has no help"
        assert not re.search(r"\bof everybody|given again|\bwhom?\b", action.help), f"{prog} {action.dest}"
        assert not re.match(r"(of|at|for) ", action.help), f"{prog} {action.dest}"
        bracket = re.search(r"\(([^()]*)\)$", re.sub(r"%\(default\)[sg]", "1", action.help))
        if bracket is not None and "default" not in bracket[1]:
            assert bracket[1] in ("source checkout only", "nashcast[recordings]"), f"{prog} {action.dest}: {bracket[1]}"
