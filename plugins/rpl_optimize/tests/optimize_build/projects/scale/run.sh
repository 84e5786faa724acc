#!/bin/sh
exec ./build/bin/scale_app "$1"
