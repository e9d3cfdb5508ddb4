# Everything a fresh Debian 12 or 13 needs, in one command each:
#   make run      install what is missing, build, show the tour; then build what the program loads
#                 for jobs, ranks and GPUs
#   make test     install what is missing, build, run every test
#   make bench    the benchmarks behind every claim of speed
#   make fidelity the published measurements reproduced: how wrong the predictions are
#   make install  the program, its scenarios, manual page, completion and library below PREFIX
#                 (/usr/local; DESTDIR in front of it); make uninstall removes what was installed
#   make deb      a Debian package of the same, and python3-syncline, in build/
#   make wheel    a wheel of the same for any Linux of glibc 2.36 or later, asked in empty Debians 12
#                 and 13 (needs PyPI, debootstrap, 1 GB, root)
#   make python   syncline for Python: PYTHONPATH=build/python python3
#   make man      the manual page, build/syncline.1
#   make gpu-check the kernels on the GPU at hand, checked and timed (needs CUDA and g++ alone)
#   make gpu-hour the first minutes on a GPU: kernels, NCCL, models and DDP jobs, in build/gpu-hour
#   make gpu-pack the same as an archive for a machine without packages: build/gpu-hour.tar.xz
#   make fuzz     every reader under libFuzzer, FUZZ_S seconds each (10 if left out; needs clang)
#   make faults   the program killed, its disk full, its memory and descriptors used up
#   make debian12 what make deb makes, asked in an empty Debian 12 (debootstrap, 1 GB, as root)
#   make debian13 a build, the tour, the tests and the packages on a Debian 13 that debootstrap makes,
#                 the packages asked in an empty one (4 GB, as root)
#   make compare  whether this build answers as OLD=path/to/another does, on 100,000 questions
#   make frameworks what frameworks themselves do, asked anew (PyPI, some GB; FRAMEWORKS='--write')
#   make pairs    every two capabilities together, and triples, held against laws (minutes; PAIRS)
#   make memcheck run, explain, tune and both simulations of drawn scenarios under valgrind (MEMCHECK)
#   make reach    how much of the program is behind each verb (CI bounds it)
#   make words    words of the pages, lengths of sentences, private words
#   make measure  lines of code and of tests, types in headers, rules that exclude knobs, the longest
#                 functions (make rooms holds them to 70 lines), lines that stand in two places
#   make check    formatting, static analysis, and the tests under sanitizers (CI runs rooms, format and test)

PACKAGES := cmake g++ ninja-build pkg-config ccache libsimgrid-dev libboost-dev nlohmann-json3-dev \
            libeigen3-dev libcli11-dev libgtest-dev googletest libvalijson-dev libbenchmark-dev \
            liblbfgspp-dev libsimdjson-dev libyaml-cpp-dev libtomlplusplus-dev zlib1g-dev libexpat1-dev \
            iproute2 libgloo-dev libopenmpi-dev openmpi-bin libzmq3-dev libsodium-dev \
            libseccomp-dev
# What dpkg says of the libraries that the program is linked to; file finds them (Debian 13 has none).
DEB_PACKAGES := dpkg-dev file
# For the module of Python.
PYTHON_PACKAGES := python3-dev
# Real training jobs, which the tests of `syncline record` run (136 MB to fetch, 600 MB), and a browser
# for those of the pages (100 MB to fetch, 400 MB).
TEST_PACKAGES := python3-torch chromium chromium-driver python3-selenium
MEMCHECK_PACKAGES := valgrind
CHECK_PACKAGES := clang-format clang-tidy clang libclang-rt-dev

DEBIAN_PACKAGES := debootstrap
WHEEL_PACKAGES := python3-venv

BUILD ?= build
JOBS ?= $(shell nproc)
# ON: warnings are errors, as CI has it. A build folder keeps it until it is told otherwise.
WERROR ?=
OPTIONS = $(addprefix -DSYNCLINE_WERROR=,$(WERROR))
STRICT := -DSYNCLINE_WERROR=ON
SUDO := $(shell [ "$$(id -u)" = 0 ] || command -v sudo)

# Where gpu-check writes, and for which GPU it builds: make gpu-check GPU_CHECK='--out FILE'.
GPU_CHECK ?=
GPU_BUILD := $(CURDIR)/build-gpu-check
GPU_ARCH = $(or $(addprefix sm_,$(subst .,,$(firstword $(shell nvidia-smi \
    --query-gpu=compute_cap --format=csv,noheader 2>/dev/null)))),sm_90)
PYTHON ?= python3

.PHONY: run modules test bench fidelity install uninstall installed deb wheel first-answer python man gpu-check gpu-hour gpu-pack fuzz faults debian12 debian13 compare frameworks pairs memcheck measure reach words check build configure program rooms setup setup-test setup-deb setup-python setup-memcheck setup-check setup-debian setup-wheel tour format lint sanitize sanitize-threads clean help

run: program
	@$(MAKE) --no-print-directory tour
	@echo; echo "Building what $(BUILD)/syncline loads for jobs, ranks and GPUs:"
	@$(MAKE) --no-print-directory modules

tour:
	@scenarios/tour.sh $(BUILD)/syncline

test: setup-test build
	SYNCLINE_NEEDS_TORCH=1 ctest --test-dir $(BUILD) --output-on-failure --no-tests=error -j $(JOBS)

# The program alone, what it loads for jobs, ranks and GPUs, and all of it with its tests.
program: configure
	cmake --build $(BUILD) -j $(JOBS) --target syncline

modules: configure
	cmake --build $(BUILD) -j $(JOBS) --target syncline_modules

build: configure
	cmake --build $(BUILD) -j $(JOBS)

configure: setup
	@cmake -S . -B $(BUILD) -G Ninja -DCMAKE_BUILD_TYPE=Release $(OPTIONS) >$(BUILD).log 2>&1 \
	  || { cat $(BUILD).log; exit 1; }
	@grep -h '^-- CUDA:' $(BUILD).log || true
	@rm -f $(BUILD).log

bench: setup
	cmake -S . -B $(BUILD) -G Ninja -DCMAKE_BUILD_TYPE=Release -DSYNCLINE_BENCH=ON $(OPTIONS)
	cmake --build $(BUILD) -j $(JOBS) --target syncline_bench
	$(BUILD)/syncline_bench

fidelity: program
	@$(BUILD)/syncline fidelity

# The list of what was installed goes with it: another build, or none, can remove it.
PREFIX ?= /usr/local
INSTALLED := $(abspath $(DESTDIR)/$(PREFIX))/share/syncline/installed.txt
install: installed
	@DESTDIR='$(abspath $(DESTDIR))' cmake --install $(BUILD) --prefix '$(abspath $(PREFIX))' >/dev/null
	@cp $(BUILD)/install_manifest.txt '$(INSTALLED)'
	@echo "installed below $(DESTDIR)$(PREFIX)"

uninstall:
	@cmake/uninstall.sh '$(INSTALLED)' '$(abspath $(DESTDIR))'

installed: configure
	cmake --build $(BUILD) -j $(JOBS) --target syncline_installed

deb: setup-deb setup-python installed
	cd $(BUILD) && cpack -G DEB

# It is asked in an empty Debian 12.
debian12: setup-debian deb first-answer
	@$(DEBIAN) bookworm $(BUILD)-debian12 --empty tests/tools/first_answer.sh $(FIRST_ANSWER) $(BUILD)/*.deb

# For any Linux of glibc 2.36 or later where it is built on Debian 12; into empty systems.
wheel: setup-python setup-wheel setup-debian configure first-answer
	cmake --build $(BUILD) -j $(JOBS) --target syncline syncline_modules syncline_nccl_tuner syncline_module
	@packaging/wheel.sh $(BUILD)
	@tests/tools/first_answer.sh $(FIRST_ANSWER) $(BUILD)/wheel/*.whl
	@$(DEBIAN) bookworm $(BUILD)-debian12 --empty tests/tools/first_answer.sh $(FIRST_ANSWER) $(BUILD)/wheel/*.whl
	@$(DEBIAN) trixie $(BUILD)-debian13 --empty tests/tools/first_answer.sh $(FIRST_ANSWER) $(BUILD)/wheel/*.whl

# What the README's first question is answered by this build.
FIRST_ANSWER := $(BUILD)/first_answer.txt
first-answer: program
	@$(BUILD)/syncline run scenarios/resnet50_ddp.json >$(FIRST_ANSWER)

python: setup-python configure
	cmake --build $(BUILD) -j $(JOBS) --target syncline_module
	@echo "PYTHONPATH=$(abspath $(BUILD))/python python3"

man: program modules
	docs/manual.sh $(BUILD)/syncline >$(BUILD)/syncline.1

# Two minutes, no network, no CMake: nvcc and g++.
gpu-check:
	@$(MAKE) --no-print-directory -C kernels -j$(JOBS) check ARCH=$(GPU_ARCH) BUILD=$(GPU_BUILD) \
	    GPU_CHECK="--out $(GPU_BUILD)/kernels.json --date $$(date -u +%Y-%m-%dT%H:%M:%SZ) \
	    --commit $$(git rev-parse HEAD 2>/dev/null || echo unknown) $(GPU_CHECK)"
	@$(MAKE) --no-print-directory -C kernels sanitize ARCH=$(GPU_ARCH) BUILD=$(GPU_BUILD)

$(GPU_BUILD)/gpu_check:
	@$(MAKE) --no-print-directory -C kernels -j$(JOBS) all ARCH=$(GPU_ARCH) BUILD=$(GPU_BUILD)

# Options in GPU_HOUR: scenarios/gpu/hour.py --help.
GPU_HOUR ?=
gpu-hour: program modules $(GPU_BUILD)/gpu_check
	@$(PYTHON) scenarios/gpu/hour.py $(GPU_HOUR)

gpu-pack: program modules $(GPU_BUILD)/gpu_check
	@scenarios/gpu/pack.sh $(BUILD)/syncline $(GPU_BUILD)/gpu_check $(BUILD)/gpu-hour.tar.xz

# Each from its corpus; what is new lies in $(BUILD)-fuzz/found until somebody picks the smallest.
FUZZ_S ?= 10
FUZZER ?= *
fuzz: setup setup-check
	@cmake -S . -B $(BUILD)-fuzz -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DSYNCLINE_FUZZ=ON \
	    -DSYNCLINE_PCH=OFF -DBUILD_TESTING=OFF $(OPTIONS) >/dev/null
	cmake --build $(BUILD)-fuzz -j $(JOBS) --target fuzzers
	@tests/tools/fuzz.sh $(BUILD)-fuzz $(FUZZ_S) '$(FUZZER)' $(JOBS)

# Within ten minutes; FAULTS='--only journals --kills 50' for less.
FAULTS ?=
faults: program modules
	$(PYTHON) tests/tools/faults.py $(BUILD)/syncline $(FAULTS)

# Whether two builds answer alike: make compare OLD=path/to/syncline; COMPARE='--share 0.1' for less.
COMPARE ?=
compare: program modules
	cmake --build $(BUILD) --target syncline_draw_scenarios
	$(PYTHON) tests/tools/compare_builds.py $(OLD) $(BUILD)/syncline --draw $(BUILD)/syncline_draw_scenarios $(COMPARE)

# In virtual environments of pinned versions below $(BUILD)/frameworks. FRAMEWORKS='--only ddp' for
# less, --write to check in what differs.
FRAMEWORKS ?=
frameworks:
	$(PYTHON) tests/frameworks/make.py $(BUILD)/frameworks $(FRAMEWORKS)

# Each scenario that breaks a law becomes a file in $(BUILD)/pairs. PAIRS='--every 10' for less,
# '--only FRAGMENT', '--seed N' for other triples.
PAIRS ?=
pairs: configure
	cmake --build $(BUILD) -j $(JOBS) --target syncline_pairs
	$(BUILD)/syncline_pairs $(BUILD)/pairs --jobs $(JOBS) $(PAIRS)

# An hour on one core; MEMCHECK='--scenarios 100' for less.
MEMCHECK ?=
memcheck: configure setup-memcheck
	cmake --build $(BUILD) -j $(JOBS) --target syncline_memcheck
	$(PYTHON) tests/tools/memcheck.py $(BUILD)/syncline_memcheck --jobs $(JOBS) $(MEMCHECK)

# Debian 13 beside this system. What it made is kept: the next time only what changed is built. From
# MIRROR, or from where apt gets this machine's own Debian.
MIRROR ?=
DEBIAN = $(SUDO) env JOBS='$(JOBS)' MIRROR='$(MIRROR)' tests/tools/debian.sh
debian13: setup-debian
	@$(DEBIAN) trixie $(BUILD)-debian13
	@$(DEBIAN) trixie $(BUILD)-debian13 make BUILD=/build JOBS='$(JOBS)' deb first-answer
	@$(DEBIAN) trixie $(BUILD)-debian13 --empty tests/tools/first_answer.sh \
	    $(BUILD)-debian13/root/build/first_answer.txt $(BUILD)-debian13/root/build/*.deb

measure:
	$(PYTHON) tests/tools/measure.py

# Words of the pages, lengths of sentences, private words; habits of comments and names.
words:
	$(PYTHON) tests/tools/words.py
	$(PYTHON) tests/tools/comments.py

check: rooms format lint sanitize

# The rooms' include graph against the build's: no cycle, nothing points upwards, a library a folder.
# No function over 70 lines, and no verb that reaches more than its limit.
rooms:
	@$(PYTHON) tests/tools/rooms.py
	@$(PYTHON) tests/tools/measure.py --limits
	@$(PYTHON) tests/tools/reach.py --limits

# How much of the program is behind each verb.
reach:
	@$(PYTHON) tests/tools/reach.py

format: setup-check
	clang-format --dry-run --Werror $$(git ls-files '*.cc' '*.h')

# What g++ precompiles clang cannot read: a configuration of its own, of which nothing is built. What
# is compiled together is read together, a third of the time. LINT=formats/json for less (patterns of
# paths).
LINT ?=
lint: setup setup-check
	@cmake -S . -B $(BUILD)-lint -G Ninja -DSYNCLINE_PCH=OFF -DBUILD_TESTING=OFF $(STRICT) >/dev/null
	@run-clang-tidy -p $(BUILD)-lint -j $(JOBS) -quiet -extra-arg=-Wno-unknown-warning-option \
	    $(LINT)

# With clang: half of the time that g++ takes for it, and a second compiler's warnings.
sanitize: setup setup-check
	cmake -S . -B $(BUILD)-sanitize -G Ninja -DCMAKE_BUILD_TYPE=Debug -DSYNCLINE_SANITIZE=ON \
	    -DCMAKE_CXX_COMPILER=clang++ $(STRICT)
	cmake --build $(BUILD)-sanitize -j $(JOBS)
	ctest --test-dir $(BUILD)-sanitize --output-on-failure --no-tests=error -j $(JOBS)

# The ranks of live runs as threads, under the thread sanitizer.
sanitize-threads: setup setup-check
	cmake -S . -B $(BUILD)-threads -G Ninja -DCMAKE_BUILD_TYPE=Debug -DSYNCLINE_SANITIZE_THREADS=ON \
	    -DBUILD_TESTING=OFF -DCMAKE_CXX_COMPILER=clang++ $(STRICT)
	cmake --build $(BUILD)-threads -j $(JOBS) --target syncline_live_thread_tests
	TSAN_OPTIONS="suppressions=$(CURDIR)/tests/tsan.supp halt_on_error=0" \
	    $(BUILD)-threads/syncline_live_thread_tests

# Asks the package manager only for what is not there.
define install
	@missing=$$(for p in $(1); do \
	  dpkg-query -W -f '$${Status}' $$p 2>/dev/null | grep -q 'ok installed' || echo $$p; done); \
	if [ -n "$$missing" ]; then \
	  echo "installing:" $$missing; \
	  $(SUDO) apt-get update -qq && \
	  DEBIAN_FRONTEND=noninteractive $(SUDO) apt-get install -y -qq --no-install-recommends $$missing \
	    >/dev/null; \
	fi
endef

setup:
	$(call install,$(PACKAGES))

setup-test:
	$(call install,$(TEST_PACKAGES) $(PYTHON_PACKAGES))

setup-memcheck:
	$(call install,$(MEMCHECK_PACKAGES))

setup-deb:
	$(call install,$(DEB_PACKAGES))

setup-python:
	$(call install,$(PYTHON_PACKAGES))

setup-check:
	$(call install,$(CHECK_PACKAGES))

setup-debian:
	$(call install,$(DEBIAN_PACKAGES))

setup-wheel:
	$(call install,$(WHEEL_PACKAGES))

clean:
	rm -rf $(BUILD) $(BUILD)-fuzz $(BUILD)-lint $(BUILD)-sanitize $(BUILD)-threads
	for folder in $(BUILD)-debian12 $(BUILD)-debian13; do [ ! -e $$folder ] || $(SUDO) rm -rf $$folder; done

help:
	@sed -n 's/^#   /  /p' Makefile
