#!/usr/bin/env bash
# What report, verify, info and repair say of things that are no good recording: each with the reason, the remedy and
# the documented exit code, and without changing them.
set -u
. "$TFH_SRC/tests/cli/lib.sh"

# Nothing here; an empty directory; no such path.
mkdir here empty
cd here || exit 1
expect 5 "$tfhook" report
says 'no run directory.*tfhook run'
expect 5 "$tfhook" verify
says 'no run directory.*tfhook run'
# Another user's is read when it is named, and never taken for one's own.
if [[ $(id -u) == 0 ]]; then
	mkdir tfhook-theirs && cp "$TFH_SRC/tests/golden/format-1.0.tft" tfhook-theirs/p.a.1.0.tft && chown -R 65534 tfhook-theirs
	ln -s tfhook-theirs tfhook-link
	for command in report verify; do
		expect 5 "$tfhook" $command
		says 'no run directory.*of yours here'
	done
	expect 0 "$tfhook" verify tfhook-theirs
fi
cd ..
for command in report info verify; do
	expect 5 "$tfhook" $command empty
	says 'empty: .*(no trace|no \*\.tft|no process|\.tft)'
	expect 3 "$tfhook" $command nosuchplace
	says 'nosuchplace: '
done

# Files and directories that may not be read: why, what to do, and each path once.
if [[ $(id -u) == 0 ]] && command -v setpriv >/dev/null; then
	mkdir closed mixed && echo x >mixed/a.tft && cp mixed/a.tft closed.tft && cp mixed/a.tft closed.json
	chmod 000 closed mixed/a.tft closed.tft closed.json
	chmod 755 . && cp "$tfhook" other
	for what in "report closed" "report closed.tft" "report mixed" "info closed.tft" "verify closed" "import closed.json -o x.tft"; do
		expect 3 setpriv --reuid 65534 --regid 65534 --clear-groups ./other $what
		says 'Permission denied; read it as the user that recorded it'
		[[ $(wc -l <.err) == 1 ]] || fail 'not one line'
	done
	chmod 777 .
	expect 3 setpriv --reuid 65534 --regid 65534 --clear-groups ./other repair mixed
	prints '^mixed/a.tft: Permission denied'
	rm -rf closed mixed closed.tft closed.json other
	chmod 755 .
fi
expect 2 "$tfhook" import
says 'import: no input'
expect 2 "$tfhook" report ''
says 'report: an empty name'
expect 2 "$tfhook" import x.json
says 'import: no output.*-o'

# A text file.
echo 'hello, this is a log' >log.txt
cp log.txt text.tft
for file in log.txt text.tft; do
	expect 3 "$tfhook" report $file
	says "$file"
	expect 3 "$tfhook" info $file
	expect 3 "$tfhook" verify $file
	prints "$file: unreadable"
done
mkdir junk && cp log.txt junk/a.tft
expect 3 "$tfhook" repair junk
says 'junk: nothing in it can be read, so there is no result'
[[ ! -e junk.repaired ]] || fail 'an empty result stays'

# A job without any recorded call leaves nothing; a run without steps says why there is no verdict.
expect 0 "$tfhook" run -o none true
[[ ! -e none ]] || fail 'an unused directory stays'
expect 0 on_gpu "$tfhook" run -o short "$job" --steps 1 --h2d 1000 --spin 10
expect 5 "$tfhook" report --all short
prints 'missing: no repeating step'
prints 'to get a verdict: '

# A whole recording.
expect 0 on_gpu "$tfhook" run -q -o rec "$job" --steps 40 --h2d 100000 --spin 2000
file=$(ls rec/*.tft)
expect 0 "$tfhook" verify rec
prints 'whole: [0-9]+ events'
expect 0 "$tfhook" report rec
expect 0 "$tfhook" info rec
prints '^command .*client_loop'
prints '^PROCESS'
prints '^DEVICE TIMES'
prints 'library: .*libcupti'
# A command that is called as run.json's own field is; variables that had no effect are named.
expect 0 env TFHOOK_RANKZ=1 TFHOOK_CUPTI=off "$tfhook" run -q -o odd env LD_LIBRARY_PATH="$TFH_BUILD/sim" "$job" --steps 3 --h2d 1000 --spin 10
says 'TFHOOK_RANKZ is unknown'
expect 0 "$tfhook" env
prints 'TFHOOK_CUPTI'
prints 'NVTX_INJECTION64_PATH'
expect 0 "$tfhook" info odd
prints '^  TFHOOK_CUPTI=off$'
prints '^  TFHOOK_RANKZ=1   <- unknown to tfhook'
[[ $(grep -c '^environment' .out) == 1 ]] || fail 'the environment is shown twice'
expect 0 "$tfhook" info --chunks rec
prints ' EVNT '
# Without device times the report tells why.
expect 0 env TFHOOK_CUPTI=off LD_LIBRARY_PATH="$TFH_BUILD/sim" "$tfhook" run -q -o untimed "$job" --steps 40 --h2d 100000 --spin 2000
expect 0 "$tfhook" report --all untimed
prints 'no device times: .*TFHOOK_CUPTI=off'

# Output that cannot be written is a failure of every command; run.json and end.json may be anything.
for command in --help --version "report rec" "report --json rec" "info rec" "verify rec"; do
	expect 3 bash -c '"$@" >/dev/full' bash "$tfhook" $command
	says 'cannot write'
	[[ $(wc -l <.err) == 1 ]] || fail 'not one line'
done
mkdir pipes
cp rec/*.tft pipes
mkfifo pipes/run.json pipes/end.json
for command in report info "repair -o piped"; do expect 0 timeout 20 "$tfhook" $command pipes; done
mkdir odd_text
cp rec/*.tft odd_text
printf '{"command": ["\x1b[2J\xc2\x9b31m"], "host": "\x1b]0;t\x07",\n"env": {\n"A": "\x1b[2J"\n}}' >odd_text/run.json
for command in report info; do
	expect 0 "$tfhook" $command odd_text
	! LC_ALL=C grep -qP '[\x00-\x08\x0b-\x1f]|\xc2[\x80-\x9f]' .out || fail "$command prints control characters"
done

# Cut off: the whole part is reported, --strict and verify say 4, repair saves it elsewhere.
cp -r rec cut
size=$(stat -c %s "$file")
truncate -s $((size - 200)) cut/*.tft
sum=$(sha256sum cut/*.tft)
expect 0 "$tfhook" report --all cut
expect 4 "$tfhook" report --strict cut
says 'incomplete.*tfhook verify'
expect 4 "$tfhook" verify cut
prints 'incomplete'
says 'tfhook repair cut'
expect 0 "$tfhook" repair cut
says 'the result is in cut.repaired'
[[ $(sha256sum cut/*.tft) == "$sum" ]] || fail 'repair changed the original'
expect 0 "$tfhook" report --all cut.repaired
cp .out first
expect 2 "$tfhook" repair cut
says 'cannot make cut.repaired.*File exists.*-o'
expect 0 "$tfhook" repair cut -o again
[[ -f again/run.json ]] || fail 'run.json is missing'
expect 2 "$tfhook" repair
says 'no input'

# A damaged byte in the middle: the chunk is left out and counted.
cp -r rec bad
printf '\377\377\377\377' | dd of="$(ls bad/*.tft)" bs=1 seek=$((size / 2)) conv=notrunc status=none
expect 4 "$tfhook" verify bad
prints 'incomplete.*damaged'

# A file of a newer version: every chunk's header says so, at byte 24 and under a checksum.
if command -v python3 >/dev/null; then
	cp -r rec newer
	python3 - newer/*.tft <<'PY'
import sys
def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff
data = bytearray(open(sys.argv[1], "rb").read())
at = 0
while data[at + 8:at + 12] == b"TFTC":
    end = at + 8 + int.from_bytes(data[at + 4:at + 8], "little")
    data[at + 24:at + 26] = (9).to_bytes(2, "little")
    data[at + 12:at + 16] = bytes(4)
    data[at + 12:at + 16] = crc32c(data[at:end]).to_bytes(4, "little")
    at = end + int.from_bytes(data[at + 32:at + 40], "little")
open(sys.argv[1], "wb").write(data[:at])
PY
	for command in report info; do
		expect 3 "$tfhook" $command newer
		says 'newer tfhook.*read it with'
	done
fi

# A killed process: what it still held was salvaged, so nothing is missing; without the salvaged file something is.
LD_LIBRARY_PATH=$TFH_BUILD/sim "$tfhook" run -q -o killed timeout -s KILL 0.5 "$job" --steps 100000 --h2d 1000 --spin 100 >/dev/null 2>&1
expect 0 "$tfhook" verify killed
prints '0.tft: whole: .*the rest in a salvaged file'
prints '1.tft: whole: .*salvaged from a process that was killed'
expect 0 "$tfhook" info killed
prints 'salvaged; format'
! grep -q 'not closed' .out || fail 'alarming'
rm killed/*.1.tft
expect 4 "$tfhook" verify killed
prints 'incomplete.*not closed'

# Killed without `tfhook run` over it: what the files lack stands in a journal, and info says so.
LD_LIBRARY_PATH=$TFH_BUILD/sim LD_PRELOAD=$TFH_BUILD/lib/libtfhook.so TFHOOK_RUN=$PWD/left timeout -s KILL 1 \
	"$job" --steps 100000 --h2d 1000 --spin 100 >/dev/null 2>&1
for ((i = 0; i < 100; i++)); do # timeout kills itself, too, and may be gone before the job is
	"$tfhook" info left | grep -q 'which runs' || break
	sleep 0.05
done
expect 0 "$tfhook" info left
prints 'journal of process [0-9]+, which is gone: records not yet in its files'
expect 0 "$tfhook" repair left -o mended
rm -rf left mended

# One file of several is gone: nothing in the others is wrong, and yet the recording is not whole. Of a file that was cut to
# its beginning nothing is left to judge, and that is said, not that nothing was hooked.
(ulimit -f 64; on_gpu "$tfhook" run -q -o several "$job" --steps 200 --h2d 1000 --spin 10 --launches 60 >/dev/null 2>&1)
[[ $(ls several/*.tft | wc -l) -ge 4 ]] || fail "a limit of 64 KiB made only $(ls several)"
expect 0 "$tfhook" verify several
expect 0 "$tfhook" report --strict several
# one with device times, not the one with the calls
for file in several/*.[1-9].tft; do
	"$tfhook" info "$file" | grep -q ', [0-9] events' && break
done
rm "$file"
expect 4 "$tfhook" verify several
prints "${file##*/}: missing"
expect 4 "$tfhook" report --strict several
# The steps that lay in one with calls, of which there is one a second, are not said to have been slow.
(ulimit -f 64; on_gpu "$tfhook" run -q -o seconds "$job" --steps 400 --h2d 1000 --spin 1000 --launches 10 >/dev/null 2>&1)
holed=0
for file in seconds/*.tft; do
	rm -rf fewer && cp -r seconds fewer && rm "fewer/${file##*/}"
	expect 0 "$tfhook" report --json fewer
	grep -q '"unclassified": {' "$TFH_TMP/.out" && prints '"holes": 1' && holed=$((holed + 1))
done
((holed)) || fail "no file but the first and last held calls"
said=no
for ((size = 4000; size < 9000; size += 250)); do
	rm -rf stump && cp -r rec stump && truncate -s $size stump/*.tft
	"$tfhook" report --all stump >.out 2>.err && break # from here on there are steps
	[[ $? != 5 ]] || grep -q 'missing: no repeating step' .out || { said=yes && says 'damaged or truncated'; }
done
[[ $said == yes ]] || fail 'no file was cut to one without calls'

# A run directory that was copied while the job ran holds the journal, too: what it had recorded until then is reported.
LD_LIBRARY_PATH=$TFH_BUILD/sim "$tfhook" run -q -o away timeout -s KILL 3 "$job" --steps 100000 --h2d 1000 --spin 1000 >/dev/null 2>&1 &
for ((i = 0; i < 100; i++)); do
	sleep 0.05
	ls away/*.journal >/dev/null 2>&1 && break
done
sleep 1
cp -r away copied
wait
if ls copied/*.journal >/dev/null 2>&1; then
	expect 0 "$tfhook" report --all copied
	prints 'steps'
	prints 'ENDED ABRUPTLY'
	ls copied/*.journal >/dev/null || fail 'a report took the journal away'
	# It is saved like one that lies where it was; a file that its process had only opened is no damage.
	for file in copied/*.0.tft; do : >"$file"; done
	expect 4 "$tfhook" verify copied
	prints 'incomplete: empty'
	expect 0 "$tfhook" repair copied -o whole
	prints 'journal: [0-9]+ events saved to whole'
	prints '0.tft: empty'
	expect 0 "$tfhook" verify whole
	prints 'whole: empty.*in a salvaged file'
fi
