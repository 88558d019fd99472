#!/usr/bin/env python3
"""plait export and what it reads back: folders, refusals, and scripts that are run with launchers that
write down what they are told."""
import json
import pathlib
import shutil
import subprocess
import sys

from program import Here, answer, plait, run_tests
from stub_launchers import Stubs

SOURCE = pathlib.Path(__file__).resolve().parent.parent
ODD = "two words, it's \"$HOME\" `date` \\ and\na line"
LLAMA = {"plait_model": 1, "name": ODD, "transformer": {
    "layers": 4, "hidden": 256, "heads": 4, "vocabulary": 512, "sequence": 128, "gated": True,
    "activation": "silu", "norm": "rms", "positions": "rotary", "qkv_bias": False,
    "projection_bias": False, "mlp_bias": False, "dropout": False, "tied": False}}
EVEN = ["--dp", "4", "--pp", "1", "--tp", "2", "--micro-batch", "1"]


def make_plan(*words, model=LLAMA, nodes=("a", "b"), name="plan.json", kinds=("H100", "H100")):
    (Here.folder / "model.json").write_text(json.dumps(model))
    (Here.folder / "cluster.json").write_text(json.dumps({
        "plait_cluster": 1, "name": "c", "nodes": [
            {"name": node, "device": kind, "devices": 4,
             "network": {"bandwidth_Gbps": 400, "latency_us": 5}} for node, kind in zip(nodes, kinds)]}))
    plait("plan", "--model", "model.json", "--cluster", "cluster.json", "--global-batch", 16, *words,
          "-o", name)


def export(target, folder, *words, **options):
    return plait("export", "plan.json", "--to", target, "-o", folder, *words, **options)


def scripts(folder):
    return [p for p in (Here.folder / folder).iterdir() if p.suffix in (".sh", ".sbatch")]


def test_every_script_is_sound():
    make_plan(*EVEN, "--zero", "0", "--recompute", "none")
    for target in ("megatron", "torchtitan", "jax"):
        for launcher in ("torchrun", "slurm", "mpirun", "ssh"):
            folder = f"{target}-{launcher}"
            export(target, folder, "--launcher", launcher)
            for script in scripts(folder):
                subprocess.run(["bash", "-n", script], check=True)
                if shutil.which("shellcheck"):
                    done = subprocess.run(["shellcheck", script], capture_output=True, text=True)
                    assert done.returncode == 0, done.stdout


def test_odd_names_stay_words():
    """Model, nodes and folder have blanks, quotes, dollars and line ends in their names."""
    make_plan(*EVEN, "--zero", "0", "--recompute", "none", nodes=(ODD + "1", ODD + "2"))
    stubs = Stubs(Here.folder)
    folder = ODD
    export("megatron", folder)
    for rank in range(2):
        [call] = stubs.run([f"./{folder}/run.sh", "--more", ODD], Here.folder, NODE_RANK=str(rank),
                           MEGATRON=ODD, DATA_PATH=ODD)
        words = call["words"]
        assert words[words.index("--master-addr") + 1] == ODD + "1"
        assert words[words.index("--node-rank") + 1] == str(rank)
        assert words[words.index("--nproc-per-node") + 1] == "4"
        assert ODD + "/pretrain_gpt.py" in words and words[-2:] == ["--more", ODD]
        assert words[words.index("--data-path") + 1] == ODD
    export("megatron", folder, "--force", "--launcher", "slurm")
    calls = stubs.run(["bash", f"{folder}/job.sbatch"], Here.folder, SLURM_JOB_NODELIST="x",
                      SLURM_SUBMIT_DIR=str(Here.folder / folder), STUB_NODES="2")
    runs = [call for call in calls if call["name"] == "torchrun"]
    assert [run["words"][run["words"].index("--node-rank") + 1] for run in runs] == ["0", "1"]
    assert all(run["words"][run["words"].index("--master-addr") + 1] == "first-host" for run in runs)


def test_mpirun_and_ssh_start_every_node():
    """Each with the caller's variables and words: on other machines there is nothing but what is passed on."""
    quoted = ("it's", '$"b"`c`')
    make_plan(*EVEN, "--zero", "0", "--recompute", "none", nodes=quoted)
    stubs = Stubs(Here.folder)
    for launcher, script in (("mpirun", "mpirun.sh"), ("ssh", "launch.sh")):
        folder = f"folder of {launcher} it's $1"
        export("megatron", folder, "--launcher", launcher)
        calls = stubs.run([f"./{folder}/{script}", "--more", ODD], Here.folder, DATA_PATH=ODD, CHECKPOINTS="kept here",
                          NCCL_IB_HCA="mlx5_0 'x'")
        runs = [call for call in calls if call["name"] == "torchrun"]
        ranks = sorted(run["words"][run["words"].index("--node-rank") + 1] for run in runs)
        assert ranks == ["0", "1"], ranks
        for run in runs:
            words = run["words"]
            assert words[words.index("--master-addr") + 1] == "it's"
            assert words[words.index("--data-path") + 1] == ODD and words[-2:] == ["--more", ODD], words
            assert words[words.index("--save") + 1] == words[words.index("--load") + 1] == "kept here"
            assert run["environment"]["NCCL_IB_HCA"] == "mlx5_0 'x'"
        if launcher == "ssh":
            hosts = [call["words"][-2] for call in calls if call["name"] == "ssh"]
            assert sorted(hosts) == sorted(quoted), hosts
            assert all(run["environment"]["PWD"] == str(Here.folder.resolve()) for run in runs)
        # The hostfile is the user's to change, and the first host in it is where processes meet.
        (Here.folder / folder / "hostfile").write_text("# ours\n  x1\tslots=1\n\nx2 slots=1\n")
        calls = stubs.run([f"./{folder}/{script}"], Here.folder)
        assert all(run["words"][run["words"].index("--master-addr") + 1] == "x1"
                   for run in calls if run["name"] == "torchrun")
        (Here.folder / folder / "hostfile").write_text("x1 slots=1\n")
        assert stubs.run([f"./{folder}/{script}"], Here.folder, status=2) == []


def test_a_node_that_fails_ends_the_others():
    make_plan(*EVEN, "--zero", "0", "--recompute", "none")
    export("megatron", "run", "--launcher", "ssh")
    calls = Stubs(Here.folder).run(["./run/launch.sh"], Here.folder, status=255, STUB_DEAD_HOST="b", STUB_HOSTS="2",
                                   STUB_SECONDS="50")
    assert sorted(call["words"][-2] for call in calls) == ["a", "b"], calls


def test_words_for_the_job_are_those_of_the_script():
    make_plan(*EVEN, "--zero", "0", "--recompute", "none", kinds=("H100", "A100-80GB"))
    export("megatron", "run", "--launcher", "slurm")
    calls = Stubs(Here.folder).run(["bash", "run/job.sbatch", "--more", ODD], Here.folder, STUB_NODES="2",
                                   SLURM_JOB_NODELIST="x", SLURM_JOB_NODELIST_HET_GROUP_0="x",
                                   SLURM_SUBMIT_DIR=str(Here.folder / "run"))
    runs = [call for call in calls if call["name"] == "torchrun"]
    assert len(runs) == 2 and all(run["words"][-2:] == ["--more", ODD] for run in runs), runs


def test_a_hostfile_cannot_have_a_blank():
    make_plan(*EVEN, "--zero", "0", "--recompute", "none", nodes=("a b", "c"))
    for launcher in ("mpirun", "ssh"):
        _, error = export("megatron", "run", "--launcher", launcher, status=2)
        assert "is not a name that a hostfile can have" in error, error
        assert not (Here.folder / "run").exists()


def test_a_folder_with_something_in_it_is_kept():
    make_plan(*EVEN, "--zero", "0", "--recompute", "none")
    (Here.folder / "run").mkdir()
    (Here.folder / "run" / "mine.txt").write_text("mine")
    _, error = export("megatron", "run", status=2)
    assert "is a folder that is not empty; --force replaces files in it" in error, error
    assert [p.name for p in (Here.folder / "run").iterdir()] == ["mine.txt"]
    export("megatron", "run", "--force")
    assert (Here.folder / "run" / "mine.txt").read_text() == "mine"
    _, error = export("megatron", "none/run", status=2)
    assert "there is no folder" in error, error
    assert "plait: /proc/none: cannot be made" in export("megatron", "/proc/none", status=2)[1]
    (Here.folder / "file").write_text("")
    assert "is not a folder" in export("megatron", "file", status=2)[1]


def test_a_plan_that_cannot_run_gets_the_price_of_one_that_can():
    make_plan("--pp", "2", "--schedule", "zb-h1", "--runs-on", "any")
    _, error = export("megatron", "run", status=3)
    assert "Megatron-LM has the schedules 1f1b and interleaved, the plan zb-h1" in error, error
    assert "the best plan that it runs takes" in error and "--nearest writes it" in error, error
    assert not (Here.folder / "run").exists()
    told = json.loads(export("megatron", "run", "--json", status=3)[0])
    best = answer("plan", "--model", "model.json", "--cluster", "cluster.json", "--global-batch", 16,
                  "--runs-on", "megatron")
    assert told["nearest"]["step_s"] == best["plans"][0]["step_s"]
    text, _ = export("megatron", "run", "--nearest")
    assert "the best plan that it runs is written" in text, text
    saved = json.loads((Here.folder / "run" / "plan.json").read_text())
    assert saved["plan"] == told["nearest"]["plan"]


def test_an_export_reads_back_as_the_plan():
    make_plan("--pp", "2", "--tp", "2", "--dp", "2", "--runs-on", "megatron")
    export("megatron", "run")
    plait("import", "--from", "megatron", "run/run.sh", "--cluster", "cluster.json", "-o", "back.json")
    own, back = (json.loads((Here.folder / name).read_text()) for name in ("plan.json", "back.json"))
    assert own["plan"] == back["plan"], (own["plan"], back["plan"])
    make_plan("--framework", "deepspeed", "--recompute", "full", "--zero", "2", "--dp", "8")
    export("deepspeed", "ds")
    plait("import", "--from", "deepspeed", "ds/ds_config.json", "--model", "model.json", "--cluster",
          "cluster.json", "-o", "back.json")
    own, back = (json.loads((Here.folder / name).read_text()) for name in ("plan.json", "back.json"))
    assert own["plan"] == back["plan"], (own["plan"], back["plan"])


def test_a_configuration_is_priced_and_improved():
    make_plan("--pp", "1", "--tp", "4", "--dp", "2", "--micro-batch", "1", "--recompute", "full",
              "--zero", "0", "--runs-on", "megatron")
    export("megatron", "run")
    told = answer("estimate", "--from", "megatron", "run/run.sh", "--cluster", "cluster.json", "-o",
                  "better.json")
    assert told["fits"] and told["faster"]["step_s"] < told["step_s"]
    text, _ = plait("estimate", "--from", "megatron", "run/run.sh", "--cluster", "cluster.json")
    assert "with Megatron-LM on the same devices this takes" in text, text
    plait("export", "better.json", "--to", "megatron", "-o", "better")


def test_what_a_script_does_not_switch_on_is_not_assumed():
    """Megatron-LM overlaps communication where it is told to; what would be faster says so."""
    make_plan("--pp", "1", "--tp", "2", "--dp", "4", "--micro-batch", "1", "--recompute", "none", "--zero", "1",
              "--sp", "--runs-on", "megatron")
    export("megatron", "run")
    script, steps = (Here.folder / "run" / "run.sh").read_text(), {}
    for missing in ([], ["--overlap-grad-reduce"], ["--overlap-grad-reduce", "--tp-comm-overlap"]):
        text = script.replace("  --overlap-param-gather\n", "")
        for flag in missing:
            text = text.replace(f"{flag}\n", "\n").replace(flag, "")
        (Here.folder / "changed.sh").write_text(text)
        told = answer("estimate", "--from", "megatron", "changed.sh", "--cluster", "cluster.json", "-o", "better.json")
        names = [flag[2:] for flag in missing]
        assert told["switches"] == names, told["switches"]
        steps[len(missing)] = told["step_s"]
        if missing:
            assert told["faster"]["step_s"] <= steps[0], (told["faster"], steps)
            text, _ = plait("estimate", "--from", "megatron", "changed.sh", "--cluster", "cluster.json")
            assert f" {', '.join(names)}, which the configuration does not have" in text, text
            plait("export", "better.json", "--to", "megatron", "-o", f"better{len(missing)}")
    assert steps[0] < steps[1] < steps[2], steps
    own = answer("estimate", "plan.json")["step_s"]
    assert abs(steps[0] / own - 1) < 1e-9, (steps, own)


def test_states_may_be_cut_over_some_of_the_replicas():
    make_plan(*EVEN, "--zero", "1", "--zero-group", "2", "--recompute", "none")
    text, _ = export("megatron", "run")
    assert "--num-distributed-optimizer-instances 2" in (Here.folder / "run" / "run.sh").read_text(), text
    plait("import", "--from", "megatron", "run/run.sh", "--cluster", "cluster.json", "-o", "back.json")
    own, back = (json.loads((Here.folder / name).read_text()) for name in ("plan.json", "back.json"))
    assert own["plan"] == back["plan"] and back["job"]["zero_group"] == 2, back["job"]
    make_plan("--dp", "8", "--zero", "3", "--zero-group", "4", "--recompute", "none", "--framework", "fsdp")
    export("fsdp", "fsdp")
    yaml = (Here.folder / "fsdp" / "accelerate.yaml").read_text()
    assert "dp_replicate_size: 2" in yaml and "dp_shard_size: 4" in yaml, yaml
    assert "states are cut over groups of 4 devices" in export("deepspeed", "ds")[0]


STYLES = {
    "arrays": """
        TP=${1:-2}; MBS=4
        GPT_ARGS=(--num-layers 4   # layers
            --hidden-size 256 --num-attention-heads 4 --seq-length 128 --max-position-embeddings 128)
        RUN_ARGS=(--tensor-model-parallel-size $TP --micro-batch-size "$MBS" --global-batch-size $((MBS * 16)))
        if [ "${FULL:-0}" = 1 ]; then RUN_ARGS+=(--recompute-granularity full); fi
        torchrun --nproc_per_node 8 pretrain_gpt.py "${GPT_ARGS[@]}" ${RUN_ARGS[@]} --bf16 "$@"
        """,
    "branches": """
        [ $# -gt 9 ] && echo "usage: run.sh --tensor-model-parallel-size N"
        case ${SIZE:-small} in small) LAYERS=4 HIDDEN=256 ;; *) LAYERS=96 HIDDEN=12288 ;; esac
        cat <<EOT > ds_config.json
        {"train_batch_size": 64, "--num-layers": 9}
EOT
        options=" --num-layers $LAYERS --hidden-size $HIDDEN --num-attention-heads 4 --seq-length 128"
        options="${options} --max-position-embeddings=128 --tensor-model-parallel-size=2 --micro-batch-size 4"
        run_cmd="torchrun pretrain_gpt.py $options --global-batch-size 64 --bf16 &> log"
        echo ${run_cmd}
        eval ${run_cmd}
        """,
    "included": """
        source ./sizes.sh
        train() { srun bash -c "python pretrain_gpt.py $SIZES --tensor-model-parallel-size $1 $RUN"; }
        train 2
        """,
}


def test_scripts_of_other_styles_are_the_same_plan():
    make_plan(*EVEN, "--zero", "0", "--recompute", "none")
    sizes = "--num-layers 4 --hidden-size 256 --num-attention-heads 4 --seq-length 128 --max-position-embeddings 128"
    run = "--micro-batch-size 4 --global-batch-size 64 --bf16"
    (Here.folder / "sizes.sh").write_text(f"SIZES='{sizes}'\nRUN=\"{run}\"\n")
    plans = []
    for name, script in {"plain": f"x.py {sizes} --tensor-model-parallel-size 2 {run}", **STYLES}.items():
        (Here.folder / f"{name}.sh").write_text(script + "\n")
        plait("import", "--from", "megatron", f"{name}.sh", "--cluster", "cluster.json", "-o", "back.json")
        saved = json.loads((Here.folder / "back.json").read_text())
        plans.append((saved["plan"], saved["job"], saved["model"]["architecture"]))
        assert plans[-1] == plans[0], name


def test_what_a_script_does_not_say_is_refused():
    make_plan(*EVEN, "--zero", "0", "--recompute", "none")
    plain = ("pretrain_gpt.py --num-layers 4 --hidden-size 256 --num-attention-heads 4 --seq-length 128 "
             "--global-batch-size 64 --micro-batch-size ")
    for script, reason in (
            (plain + "$MBS", "--micro-batch-size: is '$MBS', which nothing sets: put a line 'MBS='"),
            (plain + "$(nproc)", "is '$(nproc..)', which is not known before it runs"),
            (plain + "4 --micro-batch-size 8", "--micro-batch-size: is given twice: '4' and '8'"),
            (f"for n in 1 2; do {plain} $n; done", "starts trainings that differ"),
            (plain + "4 --tensor-model-parallel-size 3", "tp 3 x pp 1 x cp 1 = 3 does not divide the 8 devices"),
            (plain + "4 --pipeline-model-parallel-size 2 --pipeline-model-parallel-layout 'Et|x'", "'x' is none of E, t")):
        (Here.folder / "run.sh").write_text(script + "\n")
        error = plait("estimate", "--from", "megatron", "run.sh", "--cluster", "cluster.json", status=2)[1]
        assert reason in error, error


def test_what_cannot_be_written_is_said():
    make_plan(*EVEN, "--zero", "0", "--recompute", "none")
    error = export("megatrn", "run", status=2)[1]
    assert "--to: must be one of megatron," in error and "did you mean 'megatron'?" in error, error
    for other, words in (("accelerate", "accelerate takes what fsdp writes, or the ds_config.json of deepspeed"),
                         ("nemo", "no recipes of NeMo are written")):
        error = export(other, "run", status=2)[1]
        assert words in error, error
    relu = {**LLAMA, "transformer": {**LLAMA["transformer"], "gated": False, "activation": "relu"}}
    make_plan(*EVEN, "--zero", "0", "--recompute", "none", model=relu)
    assert "Megatron-LM has no flag for this network's activation" in export("megatron", "run", status=3)[1]
    assert "this network is not TorchTitan's Llama 3: its gated activation differs" in export("torchtitan", "run", status=3)[1]
    assert not (Here.folder / "run").exists()


def test_adapters_are_left_to_the_program_that_builds_the_network():
    for flag, words in (("--lora", "the adapters of rank 8: PROGRAM puts them in"),
                        ("--qlora", "the adapters of rank 8: PROGRAM puts them in, beside weights that it reads in 4 bits")):
        make_plan(flag, 8, "--framework", "fsdp", "--dp", 8)
        for target in ("fsdp", "deepspeed"):
            out = " ".join(export(target, f"{target}{flag}")[0].split())
            assert words in out, out
    make_plan("--lora", 8, "--framework", "deepspeed", "--dp", 8, "--recompute", "none")
    export("deepspeed", "adapters")
    read = ["--from", "deepspeed", "adapters/ds_config.json", "--model", "model.json", "--cluster", "cluster.json"]
    plait("import", *read, "--lora", 8, "-o", "back.json")
    own, back = (json.loads((Here.folder / name).read_text()) for name in ("plan.json", "back.json"))
    assert own["plan"] == back["plan"], (own["plan"], back["plan"])
    step = answer("estimate", "plan.json")["step_s"]
    assert answer("estimate", *read, "--lora", 8)["step_s"] == step != answer("estimate", *read)["step_s"]
    (Here.folder / "run.sh").write_text("x.py --num-layers 4 --hidden-size 256 --num-attention-heads 4 --seq-length 128\n")
    error = plait("estimate", "--from", "megatron", "run.sh", "--cluster", "cluster.json", "--lora", 8, status=2)[1]
    assert "--lora: Megatron-LM's own training script adds no adapters" in error, error
    make_plan("--lora", 8, *EVEN)
    message = export("megatron", "no", status=3)[1]
    assert "Megatron-LM's own training script adds no adapters; exports to fsdp and deepspeed" in message, message


def test_a_plan_that_does_not_say_what_the_network_is_is_refused():
    make_plan(*EVEN, "--zero", "0", "--recompute", "none")
    saved = json.loads((Here.folder / "plan.json").read_text())
    older = {**saved, "model": {k: v for k, v in saved["model"].items() if k != "architecture"}}
    (Here.folder / "plan.json").write_text(json.dumps(older))
    for target in ("megatron", "torchtitan", "jax"):
        error = export(target, "run", status=3)[1]
        assert "does not say what the network is: it is older than that; make the plan again" in error, error
    plait("plan", "--model", SOURCE / "examples/models/uneven.json", "--cluster", "T4:2", "--global-batch", 4, "-o",
          "plan.json")
    for target, reason in (("megatron", "only the ops of the network are known"),
                           ("torchtitan", "is not one that TorchTitan's Llama 3 can be"),
                           ("jax", "have no names that plait knows")):
        error = export(target, "run", status=3)[1]
        assert reason in error, error
    assert not (Here.folder / "run").exists()


def test_what_no_list_of_flags_is_known_of_is_not_written():
    make_plan(*EVEN, "--zero", "0", "--recompute", "none")
    error = export("megatron-deepspeed", "run", status=3)[1]
    assert "no list of Megatron-DeepSpeed's flags to check against, and writes none from memory" in error, error
    error = export("plait", "run", status=3)[1]
    assert "plait train takes the plan file as it is" in error.replace("`", ""), error
    assert not (Here.folder / "run").exists()


def test_bert_and_t5_need_words_and_data():
    """Megatron-LM masks words, which it cannot make up."""
    t5 = {"plait_model": 1, "name": "t5", "transformer": {
        "layers": 2, "hidden": 256, "heads": 4, "vocabulary": 512, "sequence": 128, "decoder_layers": 2,
        "causal": False, "head_bias": True}}
    make_plan(*EVEN, "--zero", "0", "--recompute", "none", model=t5)
    export("megatron", "run")
    done = subprocess.run(["bash", "run/run.sh"], cwd=Here.folder, capture_output=True, text=True, check=False)
    assert done.returncode != 0 and "DATA_PATH: the prefix of data that Megatron-LM has prepared" in done.stderr
    [call] = Stubs(Here.folder).run(["bash", "run/run.sh"], Here.folder, DATA_PATH=ODD, VOCAB_FILE=ODD)
    words = call["words"]
    assert "./pretrain_t5.py" in words and words[words.index("--vocab-file") + 1] == ODD
    assert words[words.index("--data-path") + 1] == ODD and "--mock-data" not in words
    plait("import", "--from", "megatron", "run/run.sh", "--cluster", "cluster.json", "-o", "back.json")
    own, back = (json.loads((Here.folder / name).read_text()) for name in ("plan.json", "back.json"))
    assert own["plan"] == back["plan"], (own["plan"], back["plan"])


def test_rows_of_the_papers_are_a_file():
    make_plan("--pp", "2", "--tp", "1", "--dp", "4", "--recompute", "none", "--zero", "0", "--micro-batch", "1")
    export("metis", "rows")
    assert (Here.folder / "rows" / "plans.csv").read_text().startswith("rank, cost")


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
