#!/usr/bin/env bash
# Sets up the libraries of the image as far as it has them, and becomes MindIE's daemon.
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
# From here on only: those scripts change modes in the installation, which only its owner can.
set -e
# They send the log to files alone.
export MINDIE_LOG_TO_STDOUT=1 MINDIE_LOG_TO_FILE=0
export MIES_INSTALL_PATH="${MIES_INSTALL_PATH:-/usr/local/Ascend/mindie/latest/mindie-service}"
# gpustack/runner renames the daemon and puts a script in its place that changes to the installation's folder.
daemon="$MIES_INSTALL_PATH/bin/mindieservice_daemon"
if [ -e "${daemon}_" ]; then
  daemon="${daemon}_"
fi
if [ ! -x "$daemon" ]; then
  echo "failed: user $(id -u) cannot execute $daemon; build the image from docker/engines/mindie" >&2
  exit 1
fi
# It refuses a configuration that others may read; where files are mounted, their mode cannot be changed.
private="$(mktemp --directory)"
install --mode=640 "$MIES_CONFIG_JSON_PATH" "$private/config.json"
export MIES_CONFIG_JSON_PATH="$private/config.json"
# Operators write kernel_meta into the working directory.
cd "$private"
exec "$daemon"
