#!/usr/bin/env bash
# A test that is run by scripts/run-tests can be interrupted, even where `nohup make check &` has these signals ignored.
set -eu
mkdir "$TFH_TMP/tests"
cat >"$TFH_TMP/tests/interrupted.sh" <<'EOF'
#!/usr/bin/env bash
ignored=$(sed -n 's/^SigIgn:\t*/0x/p' /proc/self/status)
echo "ignored: $ignored"
exit $((ignored & 7))
EOF
chmod +x "$TFH_TMP/tests/interrupted.sh"
trap '' HUP INT QUIT
"$TFH_SRC/scripts/run-tests" --build "$TFH_BUILD" -v "$TFH_TMP/tests"
