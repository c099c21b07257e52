# bnbook: `make help` lists the targets. Works with GNU Make 3.81 (macOS) and later.

PROFILE ?= smoke
VENV ?= .venv
BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
BNBOOK := $(BIN)/python -m bnbook

# The first Python in the range; `make book PYTHON=python3.12` picks another.
IN_RANGE := import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python; do \
	if $$p -c '$(IN_RANGE)' 2>/dev/null; then echo $$p; break; fi; done)

# Where torch and torchvision come from: cpu, or another of uv's names for PyTorch's builds, or the address of an index.
TORCH_INDEX ?=
TORCH_FROM = $(if $(findstring /,$(TORCH_INDEX)),--index-url,--torch-backend) $(TORCH_INDEX)
TORCH = --no-deps $(TORCH_FROM) $$(grep -E '^torch(vision)?==' requirements.lock)
# pip knows addresses only; the names are uv's.
TORCH_BY_PIP = $(if $(findstring /,$(TORCH_INDEX)),$(BIN)/python -m pip install --retries 1 $(TORCH),false)

NO_TORCH = $(if $(findstring /,$(TORCH_INDEX))$(findstring uv,$(INSTALLER)),no torch could be had from \
	TORCH_INDEX=$(TORCH_INDEX),INSTALLER=pip takes an address as TORCH_INDEX and knows no name such as $(TORCH_INDEX))

# Packages come by uv, which takes a fifth of pip's time; by pip where uv cannot be had or fails, or with INSTALLER=pip
# (uv does not read pip's configuration).
INSTALLER ?= uv
install_packages = { test "$(INSTALLER)" = uv && $(BIN)/python -m uv pip install --python $(BIN)/python $(1); } || \
	$(BIN)/python -m pip install $(1)

# Said when the plain index is taken, at the end of the installation, and by each later call with the same TORCH_INDEX.
PLAIN = plain index instead of $(TORCH_INDEX)
say_plain = echo "make: $(NO_TORCH): it comes from the plain index, with its GPU libraries" \
	"(5.6 GB); for another try: make distclean, then this command again"

# uv leaves compiling to the first import, which must then be allowed to keep what it compiled.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help book test site pdf bench probes lab install lock clean distclean
.DEFAULT_GOAL := help

help:
	@echo "make book [PROFILE=smoke]  run every chapter, check the results, build the site from them (smoke, laptop, paper)"
	@echo "make test                  the whole test suite, with a smoke run of every chapter and the checks of the site"
	@echo "make site                  build the site from the committed results in executed/, without running a chapter"
	@echo "make pdf                   the same site as one PDF in _build/book.pdf (needs Chromium or Chrome)"
	@echo "make bench                 what probes and training cost, beside their bars (benchmarks/README.md)"
	@echo "make probes                ask all libraries and tools of the two chapters on them again, from an empty cache"
	@echo "make lab                   JupyterLab, with copies of the chapters as notebooks in lab/"
	@echo "make install               the packages alone, into $(VENV), which the other targets do first"
	@echo "make clean                 remove the built site, smoke runs and caches; keeps laptop and paper runs"
	@echo "make distclean             the same, and the installed packages in $(VENV)"
	@echo "make lock                  write requirements.lock anew from pyproject.toml (LOCK_FLAGS=--upgrade: newer versions)"
	@echo "Variables: PYTHON=python3.12 (3.11 to 3.13), TORCH_INDEX=cpu (torch without GPU libraries),"
	@echo "           INSTALLER=pip (instead of uv)"

# ---- the two commands ----------------------------------------------------------------------------------------------

book: install
	@date +%s > $(VENV)/book-start
	$(BNBOOK) run --all --profile $(PROFILE)
	$(BNBOOK) check --runs --profile $(PROFILE)
	$(BNBOOK) build --runs --profile $(PROFILE)
	@seconds=$$(( $$(date +%s) - $$(cat $(VENV)/book-start) )); echo; \
	echo "The book ($(PROFILE) profile) is built, in $$(( seconds / 60 )) min $$(( seconds % 60 )) s. Open"; \
	echo "    $(CURDIR)/_build/html/index.html"

# One process more than cores, at most four: some tests wait for others that run a chapter or a browser.
test: install
	$(BIN)/python -m pytest -n $$($(BIN)/python -c "import os; print(min(4, os.cpu_count() + 1))") --dist loadfile \
		--no-loadscope-reorder

# ---- beside them ---------------------------------------------------------------------------------------------------

site: install
	$(BNBOOK) build

pdf: site
	$(BIN)/python -m bookpress.site.pdf

bench: install
	$(BIN)/python -m benchmarks

# What cannot be asked is said in a line, with the reason; then the exit code is 1.
probes: install
	@$(BIN)/python -m bnbook.chapters.libraries; libraries=$$?; \
	$(BIN)/python -m bnbook.chapters.other_tools && exit $$libraries

lab: install
	$(BIN)/python -m bookpress.pipeline.handout lab
	$(BIN)/python -m jupyter lab $$(test "$$(id -u)" != 0 || echo --allow-root) lab

clean:
	rm -rf _build runs/smoke runs/tests .pytest_cache src/*.egg-info
	find src tests book -name __pycache__ -prune -exec rm -rf {} +

distclean: clean
	rm -rf $(VENV)

# ---- installation --------------------------------------------------------------------------------------------------

install: $(VENV)/package.stamp
ifneq ($(TORCH_INDEX),)
	@case "$$(cat $(VENV)/torch-index)" in "$(TORCH_INDEX)") ;; "$(PLAIN)") $(say_plain) ;; \
	*) echo "make: torch was installed from elsewhere before TORCH_INDEX was set: run make distclean first"; exit 2;; esac
endif

$(BIN)/python:
	@test -n "$(PYTHON)" && $(PYTHON) -c '$(IN_RANGE)' || { \
	echo "make: Python 3.11, 3.12 or 3.13 is needed and was not found: install one, or name it: make book PYTHON=python3.12"; \
	exit 2; }
	$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
	echo "make: $(PYTHON) cannot make a virtual environment: on Debian and Ubuntu install python3-venv"; exit 2; }

# torch comes first where it has its own index: the lock then finds its version there and leaves it alone. Both must come
# from one build: torchvision does not import beside a torch from another index.
$(VENV)/lock.stamp: requirements.lock | $(BIN)/python
	test "$(INSTALLER)" != uv || $(BIN)/python -m pip install -q $$(grep '^uv==' requirements.lock) || true
	@echo "$(TORCH_INDEX)" > $(VENV)/torch-index
ifneq ($(TORCH_INDEX),)
	@{ test "$(INSTALLER)" = uv && $(BIN)/python -m uv pip install --python $(BIN)/python $(TORCH); } || $(TORCH_BY_PIP) || \
	{ $(say_plain); echo "$(PLAIN)" > $(VENV)/torch-index; }
endif
	$(call install_packages,-r requirements.lock)
	touch $@

# The package itself.
$(VENV)/package.stamp: $(VENV)/lock.stamp pyproject.toml
	$(call install_packages,--no-deps --no-build-isolation -e .)
	touch $@

# What is locked stays at its version unless pyproject.toml or LOCK_FLAGS=--upgrade says otherwise.
lock: $(VENV)/lock.stamp
	$(BIN)/python -m uv pip compile --universal --python-version 3.11 --all-extras --fork-strategy fewest \
	--no-header --no-annotate $(LOCK_FLAGS) pyproject.toml -o requirements.lock
	@# torch itself pins the GPU libraries that it needs: left out, the lock also serves a CPU-only torch.
	@# No hashes: pip would then ask for all of them, also of those GPU libraries, and install nothing.
	(echo "# Made by 'make lock' from pyproject.toml for Python 3.11 to 3.13 on Linux, macOS and Windows; do not edit."; \
	grep -vE '^(#|nvidia-|cuda-|triton)' requirements.lock) > requirements.lock.new
	mv requirements.lock.new requirements.lock
