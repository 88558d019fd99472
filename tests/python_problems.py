"""What the cases of the Python package share; tests/python_cases.py runs them."""
import pathlib
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parent.parent
SMALL = {"model": "gpt2", "cluster": "2xA100-80GB:4", "global_batch": 32}
LONG = {"model": "gpt3-175b", "cluster": "16xA100-80GB:8+16xV100-32GB:8", "global_batch": 1536,
        "effort": "prove", "time_limit": 120}
# A small network as the hub describes it.
CONFIG = {"model_type": "gpt2", "n_layer": 12, "n_embd": 768, "n_head": 12, "vocab_size": 50257,
          "n_positions": 1024, "architectures": ["GPT2LMHeadModel"]}


def raised(kind, function, *words, **options):
    try:
        function(*words, **options)
    except kind as error:
        return error
    raise AssertionError(f"{function.__name__}({words}, {options}) did not raise {kind.__name__}")


def program(*words):
    """What the program of the same wheel prints."""
    path = pathlib.Path(sys.executable).with_name("plait")
    return subprocess.run([path, *map(str, words)], capture_output=True, text=True, check=True).stdout
