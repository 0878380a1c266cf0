"""Several machines: a replicated log, leases, snapshots and forwarded requests on NATS JetStream."""
