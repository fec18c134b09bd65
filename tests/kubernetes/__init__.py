"""A real Kubernetes on this machine, for the tests: ``python -m tests.kubernetes start|stop|status|build``.

etcd, API server, controller manager, scheduler and a kubelet with containerd and runc, from Debian's packages and
source packages; pods run for real and have addresses. Needs Debian and root; else it says why it cannot be had.
"""
