#!/bin/sh
# Prints the kubeconfig by which Ninefold is registered with the cluster of kubectl's current context. It holds a
# credential: keep it nowhere but in Ninefold, which seals it.
#   kubectl apply --kustomize docker/kubernetes/access
#   sh docker/kubernetes/access/kubeconfig.sh > ninefold.kubeconfig
set -eu

of_cluster() { kubectl config view --minify --raw --flatten --output "jsonpath={.clusters[0].cluster.$1}"; }
of_token() { kubectl --namespace ninefold get secret ninefold-runner-token --output "jsonpath={.data.$1}"; }

server=$(of_cluster server)
token=$(of_token token | base64 -d)
# As the server itself is trusted by; the secret's own is that of pods inside.
authority=$(of_cluster certificate-authority-data)
test -n "$token" || { echo "the token is not there yet: try again in a moment" >&2; exit 1; }

cat <<END
apiVersion: v1
kind: Config
current-context: ninefold
clusters:
  - name: ninefold
    cluster:
      server: $server
      certificate-authority-data: ${authority:-$(of_token 'ca\.crt')}
users:
  - name: ninefold-runner
    user:
      token: $token
contexts:
  - name: ninefold
    context: { cluster: ninefold, user: ninefold-runner }
END
