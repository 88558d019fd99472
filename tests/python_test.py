#!/usr/bin/env python3
"""The Python package, installed as users install it, into build/python (./dev setup_python).

    python_test.py [--source DIR] [NAME...]

Builds a wheel of the tree by the pinned tools of that environment (build/wheel keeps what was compiled), installs
it, and runs tests/python_cases.py with it. Exit status 77, and the reason, where the environment is absent."""
import argparse
import pathlib
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parent.parent
MOST_BYTES = 10e6
SKIPPED = 77


def run(*words, **options):
    return subprocess.run([str(word) for word in words], check=False, **options).returncode


def build_wheel(python, folder):
    """The wheel of the tree; None where it does not build."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("plait-*.whl"):
        old.unlink()
    log = folder / "build.log"
    with log.open("w") as output:
        if run(python, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "-w", folder, SOURCE,
               stdout=output, stderr=subprocess.STDOUT):
            print("\n".join(log.read_text().splitlines()[-30:]))
            return None
    return next(folder.glob("plait-*.whl"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    environment = SOURCE / "build/python"
    python = environment / "bin/python"
    if not python.exists() or run(python, "-c", "import nanobind, scikit_build_core", stderr=subprocess.DEVNULL):
        print("skipped: build/python is absent or has no nanobind; ./dev setup_python makes it")
        return SKIPPED
    wheel = build_wheel(python, SOURCE / "build/wheels/test")
    if wheel is None:
        print("FAILED: the wheel does not build")
        return 1
    if wheel.stat().st_size > MOST_BYTES:
        print(f"FAILED: {wheel.name} has {wheel.stat().st_size / 1e6:.1f} MB, over {MOST_BYTES / 1e6:.0f}")
        return 1
    if run(python, "-m", "pip", "install", "-q", "--no-deps", "--force-reinstall", wheel):
        return 1
    print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.2f} MB")
    return run(python, SOURCE / "tests/python_cases.py", *options.names)


if __name__ == "__main__":
    sys.exit(main())
