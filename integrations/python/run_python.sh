#!/bin/sh
# run_python.sh COMMAND...: runs it with the package ott on Python's path.
PYTHONPATH=$PWD/integrations/python${PYTHONPATH:+:$PYTHONPATH} exec "$@"
