#!/usr/bin/env bash
# Sets up the libraries of the image as far as it has them, and becomes MindIE's daemon.
set -e
for script in \
  /usr/local/Ascend/ascend-toolkit/set_env.sh \
  /usr/local/Ascend/nnal/atb/set_env.sh \
  /usr/local/Ascend/atb-models/set_env.sh \
  /usr/local/Ascend/mindie/set_env.sh; do
  if [ -r "$script" ]; then
    # shellcheck disable=SC1090
    . "$script"
  fi
done
# It refuses a configuration that others may read; where files are mounted, their mode cannot be changed.
private="$(mktemp --directory)"
install --mode=640 "$MIES_CONFIG_JSON_PATH" "$private/config.json"
export MIES_CONFIG_JSON_PATH="$private/config.json"
cd "${MIES_INSTALL_PATH:-/usr/local/Ascend/mindie/latest/mindie-service}"
exec ./bin/mindieservice_daemon
