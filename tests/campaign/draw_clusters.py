"""Random clusters: one to four types of the whole catalogue, uneven nodes, odd numbers, fast and slow links."""
import json

from draw_models import HOSTILE, TREE


def catalogue(kind):
    return json.loads((TREE / f"data/catalogue/{kind}.json").read_text(encoding="utf-8"))[kind]


def some_types(random, count):
    """Mostly types that may train together: of one library of collectives."""
    devices = catalogue("devices")
    library = random.choice(["NCCL"] * 5 + ["RCCL"])
    if random.random() < 0.95:
        devices = [device for device in devices if device.get("collectives", "NCCL") == library]
    return random.sample([device["name"] for device in devices], min(count, len(devices)))


def any_network(random):
    return random.choice(["1Gbps", "10Gbps", "25Gbps", "100Gbps", "400Gbps", "3200Gbps", "0.1Gbps", "3.7GBps"])


def shorthand(random, types, most_nodes):
    parts = []
    for name in types:
        nodes = random.choice([1, 1, 2, 3, 4, 5, 7, 8, 13, 16, 64])
        part = f"{min(nodes, most_nodes)}x{name}:{random.choice([1, 2, 3, 4, 4, 5, 6, 7, 8, 8, 8, 16])}"
        if random.random() < 0.3:
            part += f"/{any_network(random)}"
        parts.append(part)
    if random.random() < 0.1:
        parts = [f"{part}@{random.choice(['east', 'west'])}" for part in parts]
    return "+".join(parts)


def any_shorthand(random, files):
    del files
    types = some_types(random, random.choice([1, 1, 1, 2, 2, 3, 4]) if random.random() < 0.97 else random.choice([8, 16, 47]))
    return ["--cluster", shorthand(random, types, random.choice([4, 8, 16, 64]))]


def any_instances(random, files):
    del files
    instances = catalogue("instances")
    provider = random.choice(instances)["provider"]
    names = [one["name"] for one in instances if one["provider"] == provider or random.random() < 0.005]
    chosen = random.sample(names, min(len(names), random.choice([1, 1, 2, 3])))
    return ["--cluster", "+".join(f"{random.choice([1, 2, 3, 8])}x{name}" for name in chosen)]


def any_offers(random):
    """Words of --instances, mostly of one provider."""
    instances = catalogue("instances")
    provider = random.choice(instances)["provider"]
    names = [one["name"] for one in instances if one["provider"] == provider or random.random() < 0.01]
    chosen = random.sample(names, min(len(names), random.choice([1, 2, 3])))
    return [f"{name}{random.choice(['', '', ':spot'])}:{random.choice(['1', '4', '0-8', '2-3', '40'])}" for name in chosen]


def any_link(random, slowest=0.01):
    return {"bandwidth_GBps": random.choice([slowest, 1, 12.5, 50, 400]), "latency_us": random.choice([0, 1, 30, 5000])}


def any_file(random, files):
    names = some_types(random, 4)
    zones = random.choice([1, 1, 2, 3])
    cluster = {"plait_cluster": 1, "name": random.choice(["site", *HOSTILE]), "zones": [{"name": f"zone{i}"} for i in range(zones)], "nodes": []}
    for group in range(random.randint(1, 4)):
        node = {"name": random.choice([f"n{group}", f"gpu{group}.example", f"node {group}"]), "count": random.choice([1, 1, 2, 3, 6, 17]),
                "zone": f"zone{random.randrange(zones)}"}
        if random.random() < 0.15:
            node["devices"] = [{"type": name, "count": random.choice([1, 2, 3])} for name in random.sample(names, min(2, len(names)))]
        else:
            node["device"] = random.choice(names)
            node["devices"] = random.choice([1, 2, 3, 4, 8, 8, 10])
        for key in ("intra", "network"):
            if random.random() < 0.4:
                node[key] = any_link(random)
        if random.random() < 0.3:
            node["price_usd_per_hour"] = random.choice([0, 0.01, 12.5, 98.32])
        cluster["nodes"].append(node)
    if zones > 1 and random.random() < 0.6:
        cluster["zone_links"] = [{"between": ["zone0", "zone1"], **any_link(random)}]
    if random.random() < 0.2:
        cluster["default_zone_link"] = random.choice(["none", any_link(random)])
    files["cluster.json"] = json.dumps(cluster)
    return ["--cluster", "cluster.json"]


def any_hostfile(random, files):
    lines = [f"worker-{i} slots={random.choice([1, 2, 4, 8, 8, 8, 3])}" for i in range(random.choice([1, 2, 3, 4, 9]))]
    if random.random() < 0.3:
        lines.append(f"gpu-[01-{random.randint(2, 9):02}] slots=4")
    files["hosts"] = "\n".join(lines) + "\n"
    return ["--cluster", "hosts", "--device", *some_types(random, 1)]


def draw_cluster(random, files):
    """The flags that name it; what they name is put into `files`."""
    return random.choice([any_shorthand] * 6 + [any_instances, any_file, any_file, any_hostfile])(random, files)
