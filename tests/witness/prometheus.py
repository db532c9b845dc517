"""Reads Prometheus' text form from stdin with the official client's parser, which is strict, and prints JSON:
{family: [type, [[labels, value in millionths], …]]}."""

import json
import sys

from prometheus_client.parser import text_string_to_metric_families

families = {}
for family in text_string_to_metric_families(sys.stdin.read()):
    assert family.documentation, family.name
    assert family.name not in families, family.name
    families[family.name] = [family.type, [[sample.labels, round(sample.value * 1_000_000)] for sample in family.samples]]
print(json.dumps(families))
