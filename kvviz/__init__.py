import os

__version__ = "0.1.0"

# OpenMP's threads wait by spinning; on a machine whose cores are shared (a browser, another process) that makes a run
# tens of times slower. It is read once, when torch is first imported.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
