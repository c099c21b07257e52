"""The script that a bundle brings."""

RUN = r"""#!/bin/sh
# ./run.sh PROFILE [CHAPTER ...]   runs chapters without a network and packs what they gave into results/.
# A run that is stopped goes on where it was when the script is called again.
# BNBOOK_PYTHON: the Python to use (default python3). BNBOOK_PART_MIB: size of an archive (default 50).
set -u
here=$(cd "$(dirname "$0")" && pwd)
profile=${1:-}
case "$profile" in smoke|laptop|overnight|paper) ;; *)
    echo "usage: ./run.sh PROFILE [CHAPTER ...]; expected a profile: smoke, laptop, overnight or paper" >&2
    exit 2 ;;
esac
shift
part=${BNBOOK_PART_MIB:-50}
case "$part" in *[!0-9.]*|*.*.*|.|0)
    echo "BNBOOK_PART_MIB=$part; expected the size of an archive in MiB, such as 50 or 0.5" >&2
    exit 2 ;;
esac
python=${BNBOOK_PYTHON:-python3}
if [ -f "$here/wheels/wheels.txt" ]; then
    if [ ! -f "$here/env/ready" ]; then
        "$python" -m venv --system-site-packages "$here/env" || exit 2
        # A Python that is itself a virtual environment would pass on its base alone, not its own torch.
        site='import sysconfig; print(sysconfig.get_path("purelib"))'
        "$python" -c "$site" > "$("$here/env/bin/python" -c "$site")/zz-own.pth" || exit 2
        "$here/env/bin/python" -m pip install -q --no-index --no-deps "$here"/wheels/*.whl || exit 2
        touch "$here/env/ready"
    fi
    python="$here/env/bin/python"
fi
if [ -f "$here/data/data.tar" ] && [ ! -f "$here/data/ready" ]; then
    tar -xf "$here/data/data.tar" -C "$here/data" && touch "$here/data/ready" || exit 2
fi
export PYTHONPATH="$here/source/src" BNBOOK_ROOT="$here/source" BNBOOK_DATA="$here/data"
export BNBOOK_RUNS="$here/runs" BNBOOK_STORE="$here/runs/store" BNBOOK_CACHE="$here/cache"
cd "$here/source" || exit 2
failed=0
pack() { "$python" -m bnbook.bundle.archive "$profile" "$here/results" "$part" || failed=1; }
# A shell hears of a signal at once only while it waits: not while a command runs in its foreground.
run() { "$python" -m bnbook run "$1" --profile "$profile" & child=$!; wait "$child" || failed=1; }
child=
trap 'trap "" INT TERM; [ -z "$child" ] || kill "$child"; wait; pack; exit 130' INT TERM
if [ $# -eq 0 ]; then
    run --all
else
    for chapter in "$@"; do
        run "$chapter"
    done
fi
pack
exit $failed
"""
