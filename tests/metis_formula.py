"""What Metis' program makes of one of its rows: the cost in ms, and whether the plan fits.

Written from the description of the formula, not from its source. With S stages of g_i devices cut (d_i, t_i), B
micro-batches of m_i = gbs / d_i / B samples on a replica:

    execution  (B - 1) max_i x_i + sum_i x_i       x_i: the layers of stage i at (type, t_i, m_i)
    sync       B max over the types of the last stage of (forward_backward - sum of layers)
    update     max_i 2 optimizer / t_i * layers_i / L          } of one file, tp1_bs1 of the first type
    batches    B batch_generator                               }
    dp         max_i 2 (d_i - 1) / d_i * parameters_i / t_i / bandwidth
    pp         sum over cuts of m_i * sequence * (hidden, or vocabulary / t_i before the last layer) / bandwidth

Bandwidths are intra_bandwidth * 2^20 elements a ms, of the slowest type concerned. In a stage of several types
a replica has the type of its first device and gets samples by its speed at batch 1; n samples take the sum over
the binary digits of n.
"""
import ast
import json
import pathlib
import re


def arguments_of(text):
    """{"gbs": "128", ..} of a command line or a script with it."""
    return dict(re.findall(r"--(\w+)[= ]([^\s\\]+)", text))


class Case:
    """Metis' inputs, read as its program reads them."""

    def __init__(self, hostfile, clusterfile, profile, arguments):
        hosts = json.loads(pathlib.Path(clusterfile).read_text())
        self.nodes = []  # (type, slots)
        for line in pathlib.Path(hostfile).read_text().split("\n"):
            if line.strip():
                name, slots = line.split()
                self.nodes.append((hosts[name]["instance_type"], int(slots.removeprefix("slots="))))
        self.bandwidth, self.memory = {}, {}  # by type: of its first node; elements a ms, MB
        for host in hosts.values():
            self.bandwidth.setdefault(host["instance_type"], host["intra_bandwidth"] * 1024 * 1024)
            self.memory.setdefault(host["instance_type"], host["memory"] * 1024)
        self.files = {}
        for path in sorted(pathlib.Path(profile).iterdir()):
            name = re.fullmatch(r"DeviceType\.(\w+?)_tp(\d+)_bs(\d+)\.json", path.name)
            content = json.loads(path.read_text())
            self.files[name[1], int(name[2]), int(name[3])] = content
            if len(self.files) == 1:
                self.first = content
        self.parameters = self.first["model"]["parameters"]["parameters_per_layer_bytes"]
        self.batch = int(arguments["gbs"])
        self.sequence = int(arguments["sequence_length"])
        self.hidden = int(arguments["hidden_size"])
        self.vocabulary = int(arguments["vocab_size"])
        self.layers = int(arguments["num_layers"])
        self.most_tp = int(arguments["max_profiled_tp_degree"])
        self.most_batch = int(arguments["max_profiled_batch_size"])

    def times(self, kind, tp, batch):
        return self.files[kind, tp, batch]["execution_time"]["layer_compute_total_ms"]

    def sync(self, kind, tp, batch):
        return (self.files[kind, tp, batch]["execution_time"]["forward_backward_time_ms"]
                - sum(self.times(kind, tp, batch)))

    def ranks(self, sequence):
        """The type of every rank: nodes of a type together, types in the order of `sequence`."""
        return [kind for wanted in sequence for kind, slots in self.nodes if kind == wanted
                for _ in range(slots)]


def digits(samples):
    return [1 << i for i in range(samples.bit_length()) if samples >> i & 1]


def shares(case, kinds, tp, samples):
    """Samples of each replica, in proportion to its speed; the rest by the largest fractions."""
    speeds = [1 / sum(case.times(kind, tp, 1)) for kind in kinds]
    ideal = [samples * speed / sum(speeds) for speed in speeds]
    whole = [int(x) for x in ideal]
    by_fraction = sorted(range(len(kinds)), key=lambda k: whole[k] - ideal[k])
    for k in by_fraction[:samples - sum(whole)]:
        whole[k] += 1
    return whole


class Plan:
    """One row: rank, cost, node_sequence, device_groups, strategies, batches, layer_partition."""

    def __init__(self, sequence, groups, strategies, batches, partition):
        self.sequence, self.groups, self.strategies = list(sequence), list(groups), list(strategies)
        self.batches, self.partition = batches, list(partition)

    @classmethod
    def of_row(cls, row):
        """(rank, cost, plan) of a line that the program prints, read as Python reads it."""
        literal = re.sub(r"<DeviceType\.(\w+): '(\w+)'>", lambda m: repr(m[1]), row)
        rank, cost, *rest = ast.literal_eval(f"({literal})")
        return rank, cost, cls(*rest)

    def stages(self, case):
        """(types of the ranks, d, t, micro-batch, layers [begin, end)) of every stage."""
        ranks, at = case.ranks(self.sequence), 0
        for i, group in enumerate(self.groups):
            d, t = self.strategies[i]
            yield (ranks[at:at + group], d, t, case.batch // d // self.batches,
                   self.partition[i], self.partition[i + 1])
            at += group

    def faults(self, case):
        """Why it is not a plan: layers, devices, samples or memory. Memory is that of one micro-batch, by the profile,
        on every device, with an even split and with the split by speed (in slices, as it is timed)."""
        found = []
        ranks = case.ranks(self.sequence)
        if sorted(self.sequence) != sorted(set(kind for kind, _ in case.nodes)):
            found.append("node_sequence is not the cluster's types")
        if sum(self.groups) != len(ranks):
            found.append(f"{sum(self.groups)} of {len(ranks)} devices")
        if self.partition[0] != 0 or self.partition[-1] != case.layers or len(self.partition) != len(self.groups) + 1:
            found.append("not all layers")
        if any(b <= a for a, b in zip(self.partition, self.partition[1:])):
            found.append("an empty stage")
        if found:
            return found
        for kinds, d, t, m, begin, end in self.stages(case):
            if d * t != len(kinds) or t > case.most_tp:
                found.append(f"({d}, {t}) on {len(kinds)} devices")
                continue
            if case.batch % (d * self.batches) or not 1 <= m <= case.most_batch:
                found.append(f"{case.batch} samples over {d} replicas and {self.batches} micro-batches")
                continue
            replicas = kinds[::t]
            split = shares(case, replicas, t, case.batch // self.batches) if len(set(kinds)) > 1 else [m] * d
            for k, kind in enumerate(kinds):
                for samples in {m, *digits(split[k // t])}:
                    need = sum(case.files[kind, t, samples]["execution_memory"]["layer_memory_total_mb"][begin:end])
                    if need > case.memory[kind]:
                        found.append(f"{need:.0f} of {case.memory[kind]} MB on {kind}")
        return found

    def cost(self, case):
        times, updates, syncs, sends = [], [], [], 0.0
        stages = list(self.stages(case))
        size = case.parameters
        first = case.first["execution_time"]
        for i, (kinds, d, t, m, begin, end) in enumerate(stages):
            if len(set(kinds)) == 1:
                times.append(sum(case.times(kinds[0], t, m)[begin:end]))
            else:
                replicas = kinds[::t]
                split = shares(case, replicas, t, case.batch // self.batches)
                times.append(max(sum(sum(case.times(kind, t, b)[begin:end]) for b in digits(n))
                                 for kind, n in zip(replicas, split)))
            updates.append(first["optimizer_time_ms"] * 2 / t * (end - begin) / case.layers)
            held = sum(size[0] if l == 0 else size[-1] if l == case.layers - 1 else size[1]
                       for l in range(begin, end)) / t
            syncs.append(2 * (d - 1) / d * held / min(case.bandwidth[kind] for kind in kinds))
            if i + 1 < len(stages):
                volume = m * case.sequence * (case.vocabulary / t if end == case.layers - 1 else case.hidden)
                sends += volume / min(case.bandwidth[kind] for kind in kinds + stages[i + 1][0])
        kinds, _, t, m, _, _ = stages[-1]
        waits = self.batches * max(case.sync(kind, t, m) for kind in set(kinds))
        return ((self.batches - 1) * max(times) + sum(times) + waits + max(updates) + max(syncs) + sends
                + self.batches * first["batch_generator_time_ms"])
