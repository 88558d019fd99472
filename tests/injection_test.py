#!/usr/bin/env python3
"""Names, paths and values of files that are not friendly: nothing of them is executed or commands the
terminal, and files are written where and as they should be."""
import json
import os
import pathlib
import re
import resource
import stat
import subprocess
import sys
import time

from program import Here, plait, run_tests

SMALL = {"layers": 2, "hidden": 128, "heads": 4, "vocabulary": 1000}
# Colours, a window title, a bell, reversed text, line breaks, C1, bytes that hide.
EVIL = "evil\x1b[31mRED\x1b]0;pwned\x07\u202e\nnewline\r\t\u009b31mC1\u2028\u200b \U0001f600"
ALLOWED = re.compile("[^\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]*")


def model(name, path="model.json", **more):
    (Here.folder / path).write_text(json.dumps(
        {"plait_model": 1, "name": name, "transformer": {**SMALL, **more}}))
    return path


def cluster(name, path="cluster.json"):
    (Here.folder / path).write_text(json.dumps(
        {"plait_cluster": 1, "name": name, "device_types": [{"name": name, "like": "A100-80GB"}],
         "nodes": [{"name": name, "device": name, "devices": 2}]}))
    return path


def run(*words):
    """(exit status, stdout, stderr) as bytes, with colours wished for but no terminal."""
    done = subprocess.run([Here.program, *map(str, words)], cwd=Here.folder, capture_output=True,
                          timeout=60, stdin=subprocess.DEVNULL)
    return done.returncode, done.stdout, done.stderr


def clean(text, what):
    text = text.decode()
    assert ALLOWED.fullmatch(text), (what, [c for c in text if not ALLOWED.fullmatch(c)][:5], text[:500])
    assert "\nnewline" not in text, (what, text[:500])


def test_names_of_files_do_not_command_the_terminal():
    problem = ["--model", model(EVIL), "--cluster", cluster(EVIL), "--global-batch", 4]
    status, _, _ = run("plan", *problem, "-o", "plan.json")
    assert status == 0
    verbs = [["plan", *problem], ["compare", *problem], ["model", "model.json"],
             ["explain", "plan.json"], ["estimate", "plan.json"], ["check", "plan.json"],
             ["replan", "plan.json", "--lost-devices", 1], ["diff", "plan.json", "plan.json"],
             ["export", "plan.json", "--to", "fsdp", "-o", "run"]]
    for words in verbs:
        status, out, err = run(*words)
        clean(out, words)
        clean(err, words)
        assert status in (0, 3), (words, status, err)
    # Messages quote names and paths, too.
    for words in (["plan", "--model", EVIL, "--cluster", "T4:2", "--global-batch", 4],
                  ["plan", "--model", "gpt2", "--cluster", EVIL, "--global-batch", 4],
                  ["explain", EVIL], [EVIL], ["plan", EVIL]):
        status, out, err = run(*words)
        assert status == 2, words
        clean(out + err, words)


def test_json_keeps_the_name_and_escapes_it():
    _, out, _ = run("plan", "--model", model(EVIL), "--cluster", "A100-80GB:2", "--global-batch", 4,
                    "--json")
    clean(out, "--json")
    assert EVIL in json.dumps(json.loads(out), ensure_ascii=False).encode().decode("unicode_escape") or \
        any(EVIL == value for value in texts(json.loads(out))), out[:500]


def texts(value):
    if isinstance(value, dict):
        for inner in value.values():
            yield from texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from texts(inner)
    elif isinstance(value, str):
        yield value


def test_a_name_of_64_mb_is_not_printed_back():
    (Here.folder / "long.json").write_text(
        '{"plait_model": 1, "name": "' + "x" * 60_000_000 + '", "transformer": %s}' % json.dumps(SMALL))
    _, out, err = run("plan", "--model", "long.json", "--cluster", "T4:2", "--global-batch", 4)
    assert len(out) < 20_000 and len(err) < 5_000, (len(out), len(err))
    (Here.folder / "key.json").write_text('{"plait_model": 1, "' + "y" * 60_000_000 + '": 1}')
    _, out, err = run("plan", "--model", "key.json", "--cluster", "T4:2", "--global-batch", 4)
    assert len(out) < 20_000 and len(err) < 5_000, (len(out), len(err))


STEPS = "for i in 1 2 3; do echo 'step time 0.1 s'; done"


def trial(command, name, *words, status=0):
    return plait("trial", "--launch", command, "--steps", 1, "--warm-up", 0, "--time-pattern",
                 "step time ([0-9.]+)", "--timeout", "20s", "--model", model(name), "--cluster",
                 "A100-80GB:2", "--global-batch", 4, "--budget", 1, *words, status=status)


def test_a_field_is_one_word_of_the_shell():
    for name in ("x;touch PWNED;#", "$(touch PWNED)", "`touch PWNED`", "a' ; touch PWNED ; '",
                 'a" ; touch PWNED ; "', "&& touch PWNED", "| touch PWNED", "> PWNED"):
        trial("printf '%s' {model} > told; " + STEPS, name)
        assert (Here.folder / "told").read_text() == name, name
        trial("printf '%s' \"$PLAIT_MODEL\" > told; " + STEPS, name, "--retry", "--dir", "again")
        assert (Here.folder / "told").read_text() == name, name
        for command in ("sh -c 'echo {model}'", 'echo "{model}"', "echo $(echo {model})",
                        "echo \\{model}", "# {model}\n" + STEPS, "cat << EOF\n{model}\nEOF\n"):
            _, err = trial(command, name, status=2)
            assert "PLAIT_MODEL" in err, err
        assert not (Here.folder / "PWNED").exists(), name
    trial("sh -c 'echo {model}'; " + STEPS, "gpt2-xl")  # nothing to fear from a plain word
    trial("echo {plan}; test -f {plan} && " + STEPS, "gpt2", "--dir", "a dir; touch PWNED")
    assert not (Here.folder / "PWNED").exists()


def test_output_files_keep_their_mode_and_links_stay():
    words = ["plan", "--model", "gpt2", "--cluster", "A100-80GB:2", "--global-batch", 4, "-o"]
    plait(*words, "new.json")
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE((Here.folder / "new.json").stat().st_mode) == 0o666 & ~umask
    for mode in (0o600, 0o640, 0o664):
        path = Here.folder / "old.json"
        path.write_text("old")
        path.chmod(mode)
        plait(*words, "old.json")
        assert stat.S_IMODE(path.stat().st_mode) == mode and path.read_text() != "old"
    (Here.folder / "link.json").symlink_to("old.json")
    plait(*words, "link.json")
    assert (Here.folder / "link.json").is_symlink()
    assert not list(Here.folder.glob(".plait-*")), "temporary files are gone"


def test_temporary_names_cannot_be_foreseen():
    """A program that saw one run knows nothing of the next: no name comes twice, and none has the
    number of the process."""
    (Here.folder / "victim").write_text("dear")
    folder, seen, numbers = Here.folder / "out", set(), set()
    folder.mkdir()
    for _ in range(3):
        process = subprocess.Popen(
            ["strace", "-f", "-e", "trace=openat,open", Here.program, "plan", "--model", "gpt2",
             "--cluster", "A100-80GB:2", "--global-batch", "4", "-o", "out/plan.json"],
            cwd=Here.folder, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) \
            if shutil_which("strace") else None
        if process is None:
            print("strace is not here: names are not looked at")
            break
        _, told = process.communicate(timeout=60)
        names = re.findall(r'"([^"]*\.tmp[^"]*)", ([A-Z_|]+)', told)
        assert names and all("O_EXCL" in flags and "O_NOFOLLOW" in flags for _, flags in names), names
        assert not any(name in seen for name, _ in names)
        seen.update(name for name, _ in names)
        numbers.add(process.pid)
    assert not any(str(number) in name for name in seen for number in numbers)
    assert (Here.folder / "victim").read_text() == "dear"


def shutil_which(name):
    return any(os.access(pathlib.Path(folder) / name, os.X_OK)
               for folder in os.environ.get("PATH", "").split(":"))


def under_address_sanitizer():
    """Whether the program's shadow memory alone is larger than any limit of memory."""
    return b"__asan_init" in pathlib.Path(Here.program).read_bytes()


def cheap(*words, status=2, megabytes=1000):
    """Runs with a limit of memory; fails when the program needs more or ends in another way."""
    limit = "unlimited" if under_address_sanitizer() else megabytes * 1024
    done = subprocess.run(
        ["sh", "-c", f'ulimit -v {limit}; exec "$@"', "sh", Here.program,
         *map(str, words)], cwd=Here.folder, capture_output=True, text=True, timeout=120,
        stdin=subprocess.DEVNULL)
    assert done.returncode == status, (words, done.returncode, done.stderr[:500])
    assert len(done.stderr) < 5000 and "out of memory" not in done.stderr, done.stderr[:500]
    return done.stderr


def test_bad_input_costs_little():
    rest = ["--cluster", "T4:2", "--global-batch", 4]
    lines = ["A0=xxxxxxxxxxxxxxxx"] + [f"A{i}=$A{i - 1}$A{i - 1}" for i in range(1, 40)]
    (Here.folder / "bomb.sh").write_text(
        "\n".join(lines) + "\n--num-layers 2 --hidden-size 128 --num-attention-heads 4\n")
    assert "once its variables are filled in" in cheap("plan", "--model", "bomb.sh", *rest)
    (Here.folder / "name.sh").write_text("X=$" + "a" * 20_000_000)
    cheap("plan", "--model", "name.sh", *rest)
    (Here.folder / "long.sh").write_text("a;" * 30_000_000)
    assert "is longer than 1024 KiB" in cheap("estimate", "--from", "megatron", "long.sh", "--cluster", "T4:2")
    for row in ("," * 60_000_000, "1\n" * 30_000_000):
        (Here.folder / "cells.csv").write_text("model\n" + row)
        assert "has more than 4000000 cells" in cheap("validate", "--runs", "cells.csv")
    (Here.folder / "many.json").write_text("[" + "{}," * 20_000_000 + "{}]")
    assert "has more than 2000000 values" in cheap("plan", "--model", "many.json", *rest)
    plait("plan", "--model", "gpt2", *rest, "--pp", 2, "--tp", 1, "--dp", 1, "-o", "plan.json")
    plan = json.loads((Here.folder / "plan.json").read_text())
    units = json.loads(json.dumps(plan))
    units["model"]["units"] = [{"repeat": 10_000_000, "kinds": [0]}]
    (Here.folder / "units.json").write_text(json.dumps(units))
    cheap("check", "units.json")
    plan["plan"]["micro_batches"] = 10**9
    plan["job"]["global_batch"] = 10**9
    (Here.folder / "micro.json").write_text(json.dumps(plan))
    status, _, err = run("estimate", "micro.json", "--trace", "trace.json")
    assert status == 2 and len(err) < 5000, err


def test_a_file_that_may_not_grow_is_an_error_and_the_old_one_stays():
    """As batch systems limit files; the limit comes as a signal."""
    (Here.folder / "plan.json").write_text("old")
    done = subprocess.run([Here.program, "plan", "--model", "gpt2", "--cluster", "A100-80GB:2", "--global-batch", "4",
                           "-o", "plan.json"], cwd=Here.folder, capture_output=True, text=True, timeout=60,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)))
    assert done.returncode == 2 and "plan.json: cannot be written: File too large" in done.stderr, done
    assert (Here.folder / "plan.json").read_text() == "old"
    assert [path.name for path in Here.folder.iterdir()] == ["plan.json"], "a temporary file is left"


NOBODY = 65534


def test_what_is_denied_is_not_called_missing():
    """Root may read everything, so that root tries it as nobody."""
    (Here.folder / "secret.json").write_text("{}")
    (Here.folder / "secret.json").chmod(0)
    (Here.folder / "closed").mkdir(mode=0)
    Here.folder.chmod(0o755)
    who = {"user": NOBODY, "extra_groups": []} if os.getuid() == 0 else {}
    problem = ["--cluster", "T4:2", "--global-batch", "4"]
    try:
        for words in (["explain", "secret.json"], ["explain", "closed/plan.json"],
                      ["plan", "--model", "secret.json", *problem],
                      ["trial", "--plans", "closed", "--launch", "true"],
                      ["plan", "--model", "gpt2", *problem, "-o", "closed/plan.json"]):
            done = subprocess.run([Here.program, *words], cwd=Here.folder, capture_output=True, text=True,
                                  timeout=60, **who)
            assert done.returncode == 2 and "Permission denied" in done.stderr, (words, done.stderr)
    except PermissionError:
        print("skipped: the program is where only root may read")


def test_paths_that_loop_or_are_too_long_are_sentences():
    (Here.folder / "loop").symlink_to("loop")
    problem = ["--model", "gpt2", "--cluster", "A100-80GB:2", "--global-batch", 4]
    launch = ["--launch", "true", *problem]
    for words in (["--plans", "loop", "--launch", "true"], ["--plans", "x" * 5000, "--launch", "true"],
                  ["--dir", "loop", *launch], ["--dir", "x" * 5000, *launch],
                  ["--csv", "loop", *launch], ["--csv", "x" * 5000, *launch],
                  ["--plans", "loop/inside", "--launch", "true"]):
        _, err = plait("trial", *words, status=2)
        assert err.startswith("plait: ") and err.count("\n") == 1, err


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
