"""Questions that went wrong once: words of the program, and the seconds that it is given."""
from draw_models import TREE

HERE = TREE / "tests/campaign"
MANY_TYPES = "".join((HERE / "many_types.txt").read_text(encoding="utf-8").split())

FOUND_BEFORE = [
    # The bound of plans on four types tried all ways to make up a stage, without a look at the clock: 15 s.
    (["plan", "--model", "t5-base", "--cluster", "8xA40:8/1Gbps+16xRTX4070:7/400Gbps+2xB300:7/0.1Gbps+13xRTX3090:7/400Gbps", "--seq", "35657",
      "--global-batch", "240"], 0.3),
    # No group of devices that the planner thinks of holds eight parts of a sequence; it went through all of them, 20 s.
    (["plan", "--model", "gpt2-xl", "--cluster", "1xMI325X:8+17xMI325X:1+6xMI325X:4+2xMI250X:8", "--global-batch", "1024", "--seq", "8192", "--runs-on", "any",
      "--cp", "8", "--planner", "metis"], 0.3),
    # Norms of rows that nobody gave a width took 0 / 0 seconds, which no JSON can say.
    (["plan", "--model", str(TREE / "tests/fuzz/corpus/model/good_rows_unknown.json"), "--cluster", "2xH100:4", "--global-batch", "64", "--framework",
      "plait", "--json"], 1),
    # Covers of a stage by 45 types of device were counted one by one: minutes.
    (["plan", "--model", "internlm-7b", "--cluster", MANY_TYPES, "--global-batch", "64", "--qlora", "8"], 0.3),
    # One simulation of 500 stages whose order has to be found took minutes, one of 1,000 others a second and a gigabyte.
    (["plan", "--model", str(HERE / "deep.json"), "--cluster", "250xT4:8", "--global-batch", "65536", "--pp", "500", "--micro-batch", "1", "--schedule",
      "zb-v", "--runs-on", "any"], 0.3),
    (["plan", "--model", str(HERE / "deep.json"), "--cluster", "250xT4:8", "--global-batch", "65536", "--pp", "1000", "--micro-batch", "1"], 0.3),
    # Eight kinds of nodes, and all mixes of them weighed: an internal error.
    (["plan", "--model", "gpt2", "--cluster", "1xp3.8xlarge+4xp4d.24xlarge+4xg4dn.12xlarge+4xg5.24xlarge+4xg5.48xlarge+4xp5.48xlarge+4xg6.48xlarge+4xp3.16xlarge",
      "--global-batch", "8", "--budget", "100USD", "--tokens", "1B"], 0.3),
]
