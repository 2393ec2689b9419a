"""Boxes that Beam, or a self-hosted beta9, starts, limits and bills."""

import os

# As the SDK has it, and before gRPC is imported: it would write of each lost connection to stderr.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
