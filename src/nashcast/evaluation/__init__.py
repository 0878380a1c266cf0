"""The federation beside its ablations, its agents alone and its peers, on the same streams by the same loop."""
