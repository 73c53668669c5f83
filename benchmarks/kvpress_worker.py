"""kvpress in its own environment: reads the names of presses, one a line, and answers with the seconds each one took.

It is run by ``benchmarks.against_kvpress`` with another interpreter, imports nothing of kvviz, and gets as arguments
the folder of the model, the file with the prompt's token numbers, the budget and the number of threads.
"""

import json
import sys
import time

import torch
from kvpress import KnormPress, SnapKVPress, StreamingLLMPress
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
}


@torch.inference_mode()
def compress(name):
    """As kvpress's own pipeline does it: the context without the output layer. Seconds, and the entries kept."""
    cache = DynamicCache()
    started = time.perf_counter()
    with PRESSES[name](model):
        model.model(input_ids=ids, past_key_values=cache)
    return time.perf_counter() - started, cache.layers[0].keys.shape[2]


print(json.dumps({"ready": True}), flush=True)
for line in sys.stdin:
    seconds, held = compress(line.strip())
    print(json.dumps({"seconds": seconds, "held": held}), flush=True)
