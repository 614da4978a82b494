"""Bad input to every command: exit 2, one line that names the field and what is accepted, no traceback, nothing done.  docs/cli.md"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import ConfigError
from holdfast.lab import registry
from holdfast.lab.experiment import Experiment, parameters_of
from tests.cli.command import Run

HUGE = "99999999999999999999999"
OWN = Path(__file__).parents[1] / "lab" / "own_experiment.py"

PARAMETERS = [
    # experiment, setting, what is told
    ("kit/F8", "rhos=[]", "1 to 32 different values"),
    ("kit/F8", "rhos=[2]", "a finite number from 0.0001 to 0.05"),
    ("kit/F8", "rhos=[-1]", "from 0.0001 to 0.05"),
    ("kit/F8", "rhos=[0]", "from 0.0001 to 0.05"),
    ("kit/F8", 'rhos=["nan"]', "a finite number"),
    ("kit/F8", "rhos=[0.01,0.01]", "different values"),
    ("kit/F8", "rhos=0.01", "a list [A,B,...]"),
    ("kit/F8", "rhos=[[0.01]]", "a list [A,B,...]"),
    ("kit/F8", "draws=0", "a whole number from 1 to"),
    ("kit/F8", "draws=-1", "a whole number from 1 to"),
    ("kit/F8", "draws=1.5", "a whole number"),
    ("kit/F8", "draws=true", "a whole number"),
    ("kit/F8", "draws=null", "a whole number"),
    ("kit/F8", "draws=", "a whole number"),
    ("kit/F8", f"draws={HUGE}", "a whole number from 1 to"),
    ("kit/F8", "delay_max=nan", "a finite number from 0.001 to 1.0"),
    ("kit/F8", "delay_max=inf", "a finite number from 0.001 to 1.0"),
    ("kit/F8", "delay_max=1e999", "a finite number from 0.001 to 1.0"),
    ("kit/F8", "delay_max=0", "a finite number from 0.001 to 1.0"),
    ("kit/promise", "seats=[2]", "one of 1, 3, 5"),
    ("kit/promise", "seats=[]", "at least 1 different values"),
    ("kit/promise", "numbers=0", "a whole number from 1 to 5"),
    ("kit/promise", "numbers=99", "a whole number from 1 to 5"),
    ("tickets/E13", "members=[]", "1 to 32 different values"),
    ("tickets/E13", "members=[0]", "a whole number from 2 to"),
    ("tickets/E13", "members=[1]", "a whole number from 2 to"),
    ("tickets/E13", "members=[50,1e9]", "a whole number from 2 to"),
    ("tickets/E13", "casts=0", "a whole number from 1 to"),
    ("tickets/E13", "sure_casts=0", "a whole number from 1 to"),
    ("tickets/E13", "losses=[1.0]", "a finite number from 0.0 to 0.9"),
    ("tickets/E13", "losses=[-1]", "a finite number from 0.0 to 0.9"),
    ("tickets/E13", "losses=[]", "1 to 32 different values"),
    ("tickets/E13", "spreads=[-1000]", "a finite number from -5.0 to 20.0"),
    ("tickets/E13", "spreads=[]", "1 to 32 different values"),
    ("detection/E1", "seeds=-1", "a whole number from 1 to"),
    ("detection/E1", "interval=0", "a finite number from 0.5"),
    ("detection/E1", "interval=inf", "a finite number from 0.5"),
    ("detection/E1", "latency=-1", "a finite number from 0.1"),
    ("detection/E1", "losses=[0]", "a finite number from 0.001 to 0.5"),
    ("detection/E1", "losses=[1]", "a finite number from 0.001 to 0.5"),
    ("detection/E1", "accuracies=[0]", "a finite number from 1e-12 to 0.5"),
    ("detection/E1", "accuracies=[1]", "a finite number from 1e-12 to 0.5"),
    ("detection/E1", "accuracies=[]", "1 to 32 different values"),
    ("detection/E4", "loss=0", "a finite number from 0.001 to 0.5"),
    ("detection/E4", "loss=nan", "a finite number from 0.001 to 0.5"),
    ("detection/E4", "judged=0", "a whole number from 1 to 20"),
    ("detection/E4", "shown=[0]", "a whole number from 1 to 20"),
    ("detection/E4", "heartbeats=0", "a whole number from 1000 to"),
    ("detection/E4", "heartbeats_shown=-5", "a whole number from 1000 to"),
    ("detection/E4", "members=1", "a whole number from 2 to"),
    ("detection/E10", "loss=0", "a finite number from 0.01 to 0.4"),
    ("detection/E10", "loss=1", "a finite number from 0.01 to 0.4"),
    ("detection/E10", "members=[1]", "a whole number from 2 to"),
    ("detection/E10", "members=[]", "1 to 32 different values"),
    ("detection/E10", "missed=[0]", "a whole number from 2 to"),
    ("detection/E10", "demotions=0", "a whole number from 20 to"),
]


@pytest.mark.parametrize("experiment,setting,told", PARAMETERS, ids=str)
def test_parameters(holdfast: Run, experiment: str, setting: str, told: str) -> None:
    """Bad input: the field, the value that was given, the accepted range; nothing is written."""
    field = setting.partition("=")[0]
    holdfast("lab", "run", experiment, "--set", setting).refused(2, f"--set {setting}: ", f"{experiment}: {field} accepts", told)
    assert list(Path().iterdir()) == []


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", '"nan"'])
def test_numbers_are_finite_without_saying_so(holdfast: Run, value: str) -> None:
    """Bad input: also in an experiment of a user that gives no bounds."""
    holdfast("lab", "run", OWN, "--set", f"tolerance={value}").refused(2, "own/E1: tolerance accepts a finite number;")


@pytest.mark.parametrize("experiment", registry.experiments().values(), ids=lambda experiment: experiment.id)
def test_every_field_says_what_it_accepts(holdfast: Run, experiment: Experiment[Any]) -> None:
    """Bad input: no field of any experiment takes what is not finite, negative or of another kind.

    What the command says is what ``parameters_of`` says, so it is asked once for each experiment.
    """
    for field in experiment.parameters.__struct_fields__:
        odd = ("nan", "-1e9", "[-1e9]", '["nan"]', "{}", "word")
        for value in ("x" * 5000,) if field == "run" else odd:  # The name of a file may be any text that is one.
            with pytest.raises(ConfigError) as refused:
                parameters_of(experiment, {field: value})
            assert field in str(refused.value)
            assert value[:20] in str(refused.value)
    holdfast("lab", "run", experiment.id, "--set", f"{field}={value}").refused(2, str(refused.value))


@pytest.mark.parametrize(
    "experiment,settings,told",
    [
        ("detection/E1", ["interval=1", "latency=0.6"], ["latency 0.6", "at most half the interval (0.5)"]),
        ("detection/E10", ["members=[2]", "missed=[10]"], ["members, missed and loss", "between 0.0001 and 1"]),
        ("detection/E10", ["members=[64]", "loss=0.4"], ["members, missed and loss", "between 0.0001 and 1"]),
        ("kit/F8", ["draws=5", "draws=6"], ["--set draws=6: draws is set twice"]),
        ("kit/F8", ["=5"], ["--set =5: accepted is PARAMETER=VALUE"]),
        ("kit/F8", ["drows=5"], ["kit/F8 has no parameter 'drows'; it has rhos, draws, delay_max"]),
    ],
)
def test_parameters_together(holdfast: Run, experiment: str, settings: list[str], told: list[str]) -> None:
    """Bad input: values that are fine alone and not together would run for days, or measure nothing."""
    words = [word for setting in settings for word in ("--set", setting)]
    holdfast("lab", "run", experiment, *words).refused(2, *told)


@pytest.mark.parametrize("seeds", ["0", "-1", "5", HUGE])
@pytest.mark.parametrize(
    "experiment,told",
    [
        ("kit/F8", "set --set draws=N instead"),
        ("kit/promise", "draws nothing"),
        ("tickets/E13", "set --set casts=N instead"),
        ("detection/E4", "set --set heartbeats=N instead"),
        ("detection/E10", "set --set demotions=N instead"),
    ],
)
def test_seeds_mean_something_or_are_refused(holdfast: Run, experiment: str, told: str, seeds: str) -> None:
    """``--seeds``: an experiment that counts its repetitions otherwise says in what."""
    holdfast("lab", "run", experiment, "--seeds", seeds).refused(2, f"--seeds {seeds}: {experiment}", told)


@pytest.mark.parametrize(
    "words,told",
    [
        ("--nothing", "No such option: --nothing; see `"),
        ("nothing", "No such command 'nothing'"),
        ("version --nothing", "--nothing"),
        ("version word", "word"),
        ("lab nothing", "No such command 'nothing'"),
        ("lab list word", "word"),
        ("lab run", "NAME"),
        ("lab run kit/F8 --seed", "--seed"),
        ("lab run kit/F8 --seed y", "--seed"),
        ("lab run kit/F8 --seed 1.5", "--seed"),
        ("lab run kit/F8 --seed=-1", "--seed -1: accepted are 0 to 9007199254740991"),
        (f"lab run kit/F8 --seed {HUGE}", f"--seed {HUGE}: accepted are 0 to"),
        ("lab run kit/F8 --seeds y", "--seeds"),
        ("lab run kit/F8 --jobs=-1", "--jobs -1: accepted are 1 to 1024"),
        (f"lab run kit/F8 --jobs {HUGE}", "accepted are 1 to 1024"),
        ("lab run kit/F8 --on dask:", "accepted is dask:ADDRESS"),
        ("lab run detection/E1 --seeds 0", "seeds accepts a whole number from 1 to"),
        ("lab run detection/E1 --seeds 2 --set seeds=3", "give one of the two"),
        (f"lab run {'x' * 300}.py", "cannot be read"),
        ("lab run .", "there is no such scenario or experiment"),
        ("lab sweep detection/omega --seeds 0", "names no seed"),
        (f"lab sweep detection/omega --seeds {HUGE}", "accepted are up to 1000000 seeds"),
        ("lab sweep detection/omega --seeds 0:1000001", "accepted are up to 1000000 seeds"),
        (f"lab sweep detection/omega --seeds {HUGE}:1{HUGE}", "accepted are up to 1000000 seeds"),
        ("lab sweep detection/omega --seeds 9007199254740991:9007199254740993", "none above 9007199254740991"),
        ("lab sweep detection/omega --seeds 5:1", "names no seed"),
        ("lab sweep detection/omega --seeds=-5:1", "names no seed"),
        ("lab sweep detection/omega --seeds 1:2:3", "accepted are N"),
        ("lab sweep detection/omega --jobs 0", "--jobs 0: accepted are 1 to 1024"),
        ("lab replay", "SCENARIO"),
        ("lab replay kit/F8", "is an experiment"),
        ("lab replay detection/omega --seed=-1", "--seed -1: accepted are 0 to"),
        ("lab replay detection/omega --plan .", "plan: cannot read"),
        ("lab plan", "SCENARIO"),
        ("lab plan detection/omega --seed=-1", "--seed -1: accepted are 0 to"),
        ("lab plan detection/omega --json", "--json"),
        ("lab script", "FILE"),
        ("lab script .", "cannot be read"),
        ("lab reproduce", "FOLDER"),
        ("lab reproduce kit --jobs 0", "--jobs 0: accepted are 1 to 1024"),
        ("lab reproduce kit --seed=-1", "--seed -1: accepted are 0 to"),
        ("lab demo --speed nan", "--speed nan: accepted are 0 to 1000"),
        ("lab demo --speed=-1", "--speed -1: accepted are 0 to 1000"),
        ("lab demo --speed inf", "--speed inf: accepted are 0 to 1000"),
        ("lab demo --seed=-1", "--seed -1: accepted are 0 to"),
        ("lab node", "--name"),
        ("lab node --name a --bind 127.0.0.1:0 --insecure --interval nan", "--interval nan: accepted are 0.01 to 60"),
        ("lab node --name a --bind 127.0.0.1:0 --insecure --interval 0", "--interval 0: accepted are 0.01 to 60"),
    ],
)
def test_words_and_flags(holdfast: Run, words: str, told: str) -> None:
    """Bad input: typer's own complaints are one line too."""
    holdfast(*words.split()).refused(2, told)


@pytest.mark.parametrize(
    "change,told",
    [
        (("set alpha 1", "set alpha 0"), "set alpha 0: '0' is no number that fits; accepted: a finite number above 0"),
        (("set alpha 1", "set alpha nan"), "set alpha nan: 'nan' is no number that fits; accepted: a finite number above 0"),
        (("set alpha 1", "set alpha -1"), "set alpha -1: '-1' is no number that fits; accepted: a finite number above 0"),
        (("set alpha 1", "set alpha inf"), "set alpha inf: 'inf' is no number that fits; accepted: a finite number above 0"),
        (("set alpha 1", "set alpha x"), "set alpha x: 'x' is no number that fits; accepted: a finite number above 0"),
        (("set alpha 1", "set beta 1"), "there is no such parameter; accepted: alpha"),
        (("set alpha 1", "set alpha"), "accepted: set PARAMETER VALUE"),
        (("omega\nset alpha 1", "heartbeat\nset m 0"), "set m 0: '0' is no number that fits; accepted: a whole number above 0"),
        (("omega\nset alpha 1", "heartbeat\nset m 1.5"), "set m 1.5: '1.5' is no number that fits; accepted: a whole number above 0"),
        (("detection/omega\nset alpha 1", "kit/phase\nset rule none"), "set rule none: accepted: "),
        (("nodes a b", "link 20ms..1ms\nnodes a b"), "ends before it begins; accepted: link 10ms | link 1ms..20ms"),
        (("nodes a b", "link 1ms..\nnodes a b"), "accepted: link"),
        (("nodes a b", "link -1ms\nnodes a b"), "accepted: link"),
        (("nodes a b", "loss nan\nnodes a b"), "accepted: loss"),
        (("nodes a b", "loss 1\nnodes a b"), "accepted: loss"),
        (("nodes a b", "seed -1\nnodes a b"), "is not between 0 and"),
        (("nodes a b", f"seed {HUGE}\nnodes a b"), "is not between 0 and"),
        (("nodes a b", "nodes a a"), "needs names, each once"),
        (("run 3s", "run -3s"), "accepted: run"),
        (("run 3s", "run nan"), "accepted: run"),
        (("run 3s", "run 1e9s"), "is not between 0 and 86400 s"),
        (("run 3s", "partition a b | a"), "needs each name on one side"),
        (("run 3s", "call a __init__"), "0 machines of a have a method '__init__'"),
        (("run 3s", "drop Ok a->b 0"), "TIMES is a number between 1 and"),
    ],
    ids=lambda value: value[1].replace("\n", "; ") if isinstance(value, tuple) else "",
)
def test_scripts(holdfast: Run, change: tuple[str, str], told: str) -> None:
    """Bad input: a script's line, what is wrong with it and what is accepted."""
    script = Path("script.txt")
    script.write_text("scenario detection/omega\nset alpha 1\nnodes a b\nrun 3s\n".replace(*change))
    holdfast("lab", "script", script).refused(2, "script.txt", told)


PICKY = """
from tests.lab.own_scenario import OwnScenario
class Picky(OwnScenario):
    def build(self, host, setup):
        assert setup.parameters["weight"] < 10
        return super().build(host, setup)
SCENARIO = Picky()
"""


def test_settings_that_machines_refuse(holdfast: Run) -> None:
    """Bad input: what no seed draws may be more than a machine can be built with; the script is blamed, not the machine."""
    Path("picky.py").write_text(PICKY)
    script = Path("script.txt").resolve()
    script.write_text("scenario picky.py\nset weight 11\nnodes a b c\nrun 1s\n")
    holdfast("lab", "script", script).refused(2, "set weight 11", "picky.py cannot be built so")
    script.write_text("scenario picky.py\nset weight 9\nnodes a b c\nrun 1s\n")
    assert holdfast("lab", "script", script).code == 0


EXITING = """
import sys
from tests.lab.own_scenario import OwnScenario
class Exiting(OwnScenario):
    def setup(self, random):
        sys.exit(0)
SCENARIO = Exiting()
"""


@pytest.mark.parametrize("words", ["run", "sweep", "sweep --jobs 2", "replay", "plan"])
def test_exits_of_users(holdfast: Run, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bad input: a scenario that exits with 0 while it runs has not passed."""
    monkeypatch.setenv("PYTHONPATH", str(OWN.parents[2]))  # for the processes of --jobs
    Path("exiting.py").write_text(EXITING)
    holdfast("lab", *words.split(), Path("exiting.py").resolve()).refused(2, "called sys.exit(0)")


@pytest.mark.parametrize(
    "text,told",
    [
        ("import sys\nsys.exit(7)\n", "SystemExit: 7"),
        ("raise SystemExit\n", "SystemExit"),
        ("1 / 0\n", "ZeroDivisionError"),
        ("def (\n", "SyntaxError"),
        ("SCENARIO = 5\n", "has neither a SCENARIO"),
        ("", "has neither a SCENARIO"),
    ],
)
@pytest.mark.parametrize("verb", ["run", "sweep", "replay", "plan"])
def test_files_of_users(holdfast: Run, verb: str, text: str, told: str) -> None:
    """Bad input: a file that cannot be imported says why, and does not choose our exit code."""
    Path("own.py").write_text(text)
    holdfast("lab", verb, Path("own.py").resolve()).refused(2, "own.py: ", told)
