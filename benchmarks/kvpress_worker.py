"""kvpress in its own environment: reads the names of presses, one a line, and answers with the seconds each one took;
after the word ``kept`` and a name, with the positions that each layer and head keeps.

It is run by ``benchmarks.against_kvpress`` with another interpreter, imports nothing of kvviz, and gets as arguments
the folder of the model, the file with the prompt's token numbers, the budget and the number of threads.
"""

import json
import sys
import time

import torch
from kvpress import KeyDiffPress, KnormPress, LagKVPress, SnapKVPress, StreamingLLMPress
from transformers import AutoModelForCausalLM, DynamicCache

folder, prompt, budget, threads = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
torch.set_num_threads(threads)
with open(prompt) as stream:
    ids = torch.tensor([json.load(stream)])
model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="sdpa").eval()
# compute_n_kept rounds down, and half an entry keeps it from losing one
ratio = 1 - (budget + 0.5) / ids.shape[1]
PRESSES = {
    "snapkv": SnapKVPress(ratio, window_size=32, kernel_size=5),
    "streaming": StreamingLLMPress(ratio, n_sink=4),
    "knorm": KnormPress(ratio),
    "keydiff": KeyDiffPress(ratio),
    "lagkv": LagKVPress(ratio, n_sink=4, lag_size=32),
}


@torch.inference_mode()
def compress(name):
    """As kvpress's own pipeline does it: the context without the output layer. Seconds, and the entries kept."""
    started = time.perf_counter()
    cache = compressed(name)
    return time.perf_counter() - started, cache.layers[0].keys.shape[2]


def compressed(name):
    cache = DynamicCache()
    with PRESSES[name](model):
        model.model(input_ids=ids, past_key_values=cache)
    return cache


@torch.inference_mode()
def kept(name):
    """The positions whose keys are held, ascending, [layer][head][entries]: kvpress keeps keys and not their places."""
    whole = DynamicCache()
    model.model(input_ids=ids, past_key_values=whole)
    found = []
    for all_keys, some in zip(whole.layers, compressed(name).layers, strict=True):
        places = torch.cdist(some.keys[0].double(), all_keys.keys[0].double()).argmin(-1)
        found.append(places.sort(-1).values.tolist())
    return found


print(json.dumps({"ready": True}), flush=True)
for line in sys.stdin:
    if line.startswith("kept "):
        print(json.dumps({"kept": kept(line.split()[1])}), flush=True)
        continue
    seconds, held = compress(line.strip())
    print(json.dumps({"seconds": seconds, "held": held}), flush=True)
