import sys

from bnbook import cli
from bnbook.pipeline.handout.handout import main

sys.exit(cli.guarded(lambda: main(sys.argv[1])))
