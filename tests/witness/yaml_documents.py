"""Reads YAML documents from stdin and prints them as a JSON list."""

import json
import sys

import yaml

print(json.dumps(list(yaml.safe_load_all(sys.stdin))))
