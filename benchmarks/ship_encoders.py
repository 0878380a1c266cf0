"""Copy trained encoders into the package, with their checksums.

    nashcast reproduce pretrain && python benchmarks/ship_encoders.py

Takes every encoder and its note from NASHCAST_ENCODERS, or the user's own folder of encoders.
"""

from __future__ import annotations

import shutil

from nashcast.paper.pretrained import encoder_folder
from nashcast.paper.shipped import FOLDER, write_checksums


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    found = sorted(path for path in encoder_folder().iterdir() if path.suffix in (".npz", ".json"))
    for path in found:
        shutil.copyfile(path, FOLDER / path.name)
    write_checksums(FOLDER)
    total = sum(path.stat().st_size for path in FOLDER.iterdir())
    print(f"{len(found)} files copied to {FOLDER}; {total / 1024:.0f} KB in all")


if __name__ == "__main__":
    main()
