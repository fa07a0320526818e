# evprof: the one build.
#
#   make                 build/libevprof.so, build/evprof-collector, build/evprof-symbols, build/evprof,
#                        build/libevprof-reader.so
#   make demo            install what is missing, build, profile a program, print the report
#   make test            install what is missing, build, check the rules, run unit and end-to-end tests
#   make check-all       everything that can be checked: test, lint, sanitizers, fuzzing
#   make bench | bench-peers | fuzz | stress | model | musl | lint | format | check-rules | coverage | clean
#   make install | uninstall          PREFIX (default /usr/local), DESTDIR
#   make wheel | sdist | release-check  packages for pip in dist/ (MACHINES="x86_64 aarch64"), and their check
#   make deb | rpm       packages for this machine's distribution in dist/deb, dist/rpm
#
# Switches, each with an object directory of its own: DEBUG=1 ASAN=1 TSAN=1 COVERAGE=1 CC=clang. DEBUG, ASAN
# and TSAN check the invariants (evprof/invariant.h).
# FUZZ_SECONDS (default 60) is for each fuzz target. TESTS="name..." runs only these test programs, without the rules,
# EVPROF_TEST_LANES (2) of them side by side. EVPROF_SETUP_SECONDS (900) is for all that test and check-all fetch.

PREFIX ?= /usr/local
DESTDIR ?=
FUZZ_SECONDS ?= 60
TEST_TIMEOUT ?= 1800
CFLAGS ?= -O2 -g
CLANG ?= clang

# Use all cores, unless told otherwise. Only the outermost make may say so: the others share its job server.
ifeq ($(MAKELEVEL),0)
ifeq ($(findstring -j,$(MAKEFLAGS)),)
MAKEFLAGS += -j$(shell nproc 2>/dev/null || echo 2)
endif
endif

# ---- Switches -------------------------------------------------------------------------------------------------------

variant :=
ifneq ($(findstring clang,$(notdir $(CC))),)
variant := $(variant)-clang
endif
ifdef DEBUG
variant := $(variant)-debug
override CFLAGS := -O0 -g3 -DEVPROF_DEBUG
endif
ifdef ASAN
variant := $(variant)-asan
override CFLAGS := -O1 -g -DEVPROF_DEBUG
instrument := -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
endif
ifdef TSAN
variant := $(variant)-tsan
override CFLAGS := -O1 -g -DEVPROF_DEBUG
instrument := -fsanitize=thread -fno-omit-frame-pointer
endif
ifdef COVERAGE
variant := $(variant)-coverage
override CFLAGS := -O0 -g
instrument := --coverage -fprofile-update=atomic
endif
ifdef FUZZ
variant := -fuzz
override CFLAGS := -O1 -g -DEVPROF_DEBUG
instrument := -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
endif
# B=DIRECTORY on the command line puts everything elsewhere.
ifneq ($(origin B),command line)
B := build$(variant)
endif

# ---- What there is --------------------------------------------------------------------------------------------------

preload_sources := $(wildcard preload/*/*.c)
# What writes a trace file: for the collector and for the tools.
shared_sources := $(wildcard tools/shared/*/*.c)
collector_sources := $(filter-out collector/symbols/symbols%,$(wildcard collector/*/*.c))
symbols_sources := $(wildcard collector/symbols/symbols*.c) collector/base/rights.c
tools_sources := $(wildcard tools/*/*.c)
# The library for other languages has everything of the tools but the command line.
reader_sources := $(filter-out tools/cmd/% tools/run/% tools/control/% tools/attach/% tools/stack/% tools/watch/% tools/top/% tools/serve/% \
	tools/slow/% tools/push/% tools/ship/%,$(tools_sources))
unit_tests := $(patsubst %.c,$(B)/%,$(wildcard tests/unit/test_*.c))
unit_helpers := $(patsubst %.c,$(B)/%.o,$(filter-out tests/unit/test_%,$(wildcard tests/unit/*.c)))
e2e_tests := $(patsubst %.c,$(B)/%,$(wildcard tests/e2e/test_*.c))
e2e_helpers := $(patsubst %.c,$(B)/%.o,$(filter-out tests/e2e/test_%,$(wildcard tests/e2e/*.c)))
stress_helpers := $(patsubst %.c,$(B)/%.o,$(filter-out tests/stress/stress_%,$(wildcard tests/stress/*.c)))
stress_programs := $(patsubst %.c,$(B)/%,$(wildcard tests/stress/stress_*.c))
fuzz_targets := $(patsubst %.c,$(B)/%,$(wildcard tests/fuzz/fuzz_*.c))
fuzz_helpers := $(patsubst %.c,$(B)/%.o,$(filter-out tests/fuzz/fuzz_% tests/fuzz/replay.c,$(wildcard tests/fuzz/*.c)))
# The same targets without libFuzzer, for what is kept in tests/fuzz/corpus.
fuzz_replays := $(fuzz_targets:$(B)/tests/fuzz/fuzz_%=$(B)/tests/fuzz/replay_%)
rules := $(sort $(wildcard tests/check_*.sh))
manuals := $(wildcard docs/man/*.1 docs/man/*.7)
units := $(wildcard collector/systemd/*.service.in collector/systemd/*.socket.in)

preload_objects := $(preload_sources:%.c=$(B)/%.o)
shared_objects := $(shared_sources:%.c=$(B)/%.o)
collector_objects := $(collector_sources:%.c=$(B)/%.o) $(shared_objects)
symbols_objects := $(symbols_sources:%.c=$(B)/%.o)
tools_objects := $(tools_sources:%.c=$(B)/%.o) $(shared_objects)
reader_objects := $(reader_sources:%.c=$(B)/%.o) $(shared_objects)

programs := $(if $(preload_sources),$(B)/libevprof.so) $(if $(wildcard collector/server/main.c),$(B)/evprof-collector) \
	$(B)/evprof-symbols $(if $(wildcard tools/cmd/evprof.c),$(B)/evprof) $(B)/libevprof-reader.so
# The parts without their mains, for the tests. Archives, so that a test gets only what it uses.
parts := $(B)/libcollector.a $(B)/libtools.a

# ---- Flags ----------------------------------------------------------------------------------------------------------

warnings := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wvla
base_flags := -std=gnu11 -D_GNU_SOURCE= -Iinclude $(warnings)
compile = $(CC) $(base_flags) $(if $(instrument),-DEVPROF_INSTRUMENTED) $(CPPFLAGS) $(CFLAGS) $(instrument) -MMD -MP

# In someone else's process: nothing exported but the version script's names, thread-local storage that needs no call
# and no allocation, and every symbol bound at the start, so that no first call resolves inside a hook.
preload_flags := -fPIC -fvisibility=hidden -ftls-model=initial-exec
preload_link := -shared -Wl,-soname,libevprof.so -Wl,--version-script=preload/evprof.map -Wl,-z,now -Wl,-z,relro \
	-Wl,-z,nodelete -Wl,-z,noexecstack
# clang leaves the sanitizers' symbols of a shared library to the program.
ifeq ($(instrument),)
preload_link += -Wl,-z,defs
endif
preload_libraries := -ldl -lpthread
# The objects of the tools are also those of libevprof-reader.so, which exports what its version script names.
tools_flags := -fPIC -fvisibility=hidden
reader_link := -shared -Wl,-soname,libevprof-reader.so -Wl,--version-script=tools/api/evprof-reader.map \
	-Wl,--gc-sections -Wl,-z,relro -Wl,-z,noexecstack
ifeq ($(instrument),)
reader_link += -Wl,-z,defs
endif
tools_libraries := -ljansson -lzstd -lz -ldl -lm -lpthread
collector_libraries := -ljansson -lzstd -lz -lpthread
symbols_libraries := -ldw -lelf -ldl

# ---- Build ----------------------------------------------------------------------------------------------------------

# V=1 prints the commands whole.
ifdef V
say =
else
say = @echo "  $(1) $(@:$(B)/%=%)";
endif

.PHONY: all
all: $(programs)
	@:

# A library that is not there is named once, with what to do, before the first compiler error about it.
$(B)/.ready:
	@CC='$(CC)' sh tools/scripts/setup.sh --check build
	@mkdir -p $(B) && touch $@

$(B)/preload/%.o: preload/%.c | $(B)/.ready
	@mkdir -p $(@D)
	$(call say,CC)$(compile) -Ipreload $(preload_flags) -c $< -o $@

$(B)/collector/%.o: collector/%.c | $(B)/.ready
	@mkdir -p $(@D)
	$(call say,CC)$(compile) -Icollector -Itools/shared -c $< -o $@

# Older than every object that has these flags: a build of before them is done again.
.PHONY: look
$(B)/.tools-flags: look | $(B)/.ready
	@echo '$(tools_flags)' | cmp -s - $@ || echo '$(tools_flags)' >$@

$(B)/tools/%.o: tools/%.c $(B)/.tools-flags | $(B)/.ready
	@mkdir -p $(@D)
	$(call say,CC)$(compile) -Itools -Itools/shared $(tools_flags) -c $< -o $@

$(B)/tools/shared/%.o: tools/shared/%.c $(B)/.tools-flags | $(B)/.ready
	@mkdir -p $(@D)
	$(call say,CC)$(compile) -Itools/shared $(tools_flags) -c $< -o $@

# Loops over every event of a trace, which -O2 leaves scalar.
$(B)/tools/trace/events.o $(B)/tools/shared/file/columns.o: CFLAGS := $(CFLAGS) $(if $(filter -O2,$(CFLAGS)),-O3)

# The assembler includes the loops of the calibration and the files of the pages, which -MMD does not see.
$(B)/preload/calibrate/calibrate.o: preload/calibrate/programs.py

$(B)/tools/html/page.o: $(wildcard tools/html/*.css tools/html/*.html tools/html/script/*)

$(B)/tools/serve/page.o: $(wildcard tools/serve/page/* tools/html/shared.css tools/html/script/shared.js)

$(B)/tests/%.o: tests/%.c | $(B)/.ready
	@mkdir -p $(@D)
	$(call say,CC)$(compile) -Wno-missing-prototypes -Wno-unknown-warning-option -Wno-format-truncation \
		-I. -Ipreload -Icollector -Itools -Itools/shared -c $< -o $@

$(B)/libevprof.so: $(preload_objects) preload/evprof.map
	$(call say,LD)$(CC) $(CFLAGS) $(instrument) $(preload_link) $(LDFLAGS) -o $@ $(preload_objects) $(preload_libraries)

$(B)/evprof-collector: $(collector_objects)
	$(call say,LD)$(CC) $(CFLAGS) $(instrument) $(LDFLAGS) -o $@ $^ $(collector_libraries)

# What reads symbols is a program of its own, and the only one with elfutils in it (collector/symbols/symbols.h).
$(B)/evprof-symbols: $(symbols_objects)
	$(call say,LD)$(CC) $(CFLAGS) $(instrument) $(LDFLAGS) -o $@ $^ $(symbols_libraries)

$(B)/evprof: $(tools_objects)
	$(call say,LD)$(CC) $(CFLAGS) $(instrument) $(LDFLAGS) -o $@ $^ $(tools_libraries)

$(B)/libevprof-reader.so: $(reader_objects) tools/api/evprof-reader.map
	$(call say,LD)$(CC) $(CFLAGS) $(instrument) $(reader_link) $(LDFLAGS) -o $@ $(reader_objects) $(tools_libraries)

$(B)/libcollector.a: $(filter-out $(B)/collector/server/main.o,$(collector_objects)) | $(B)/.ready
	@rm -f $@
	$(call say,AR)ar rcs $@ $^

$(B)/libtools.a: $(filter-out $(B)/tools/cmd/evprof.o,$(tools_objects)) | $(B)/.ready
	@rm -f $@
	$(call say,AR)ar qcs $@ $^

$(B)/tests/unit/libhelpers.a: $(unit_helpers) | $(B)/.ready
	@mkdir -p $(@D) && rm -f $@
	$(call say,AR)ar rcs $@ $^

# ---- Test programs --------------------------------------------------------------------------------------------------

test_libraries := $(sort $(collector_libraries) $(tools_libraries)) -lcriterion -lm

$(B)/tests/unit/test_preload_%: $(B)/tests/unit/test_preload_%.o $(preload_objects) $(B)/tests/unit/libhelpers.a
	$(call say,LD)$(CC) $(CFLAGS) $(instrument) $(LDFLAGS) -o $@ $^ $(preload_libraries) $(test_libraries)

# With the program that has elfutils in it as a part of its own source.
$(B)/tests/unit/test_symbols: $(B)/tests/unit/test_symbols.o $(B)/libcollector.a \
	$(filter-out $(B)/collector/symbols/symbols.o,$(symbols_objects))
	$(call say,LD)$(CC) $(CFLAGS) $(instrument) $(LDFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(symbols_libraries) \
		$(test_libraries)

$(B)/tests/unit/test_%: $(B)/tests/unit/test_%.o $(B)/tests/unit/libhelpers.a $(parts)
	$(call say,LD)$(CC) $(CFLAGS) $(instrument) $(LDFLAGS) -o $@ $(filter %.o,$^) \
		-Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(test_libraries)

$(B)/tests/unit/test_corpus: $(fuzz_replays)

$(B)/tests/e2e/test_%: $(B)/tests/e2e/test_%.o $(e2e_helpers)
	$(call say,LD)$(CC) $(CFLAGS) $(instrument) $(LDFLAGS) -o $@ $^ $(test_libraries)

# Libraries and collectors of another version of the ring or of the protocol: today's but for the one number. The two
# folders of each kind have what an installation of two releases would have (tests/e2e/test_versions.c).
other_versions := $(B)/tests/versions
$(other_versions)/ring/library.o: preload/ring/memory.c
$(other_versions)/ring/collector.o: collector/ring/layout.c
$(other_versions)/protocol/library.o: preload/join/handshake.c
$(other_versions)/protocol/collector.o: collector/base/control.c
other_version = sed -E 's/\b(RING|CONTROL)_VERSION\b/(&+1)/' $< | $(compile) -x c
$(other_versions)/%/library.o: | $(B)/.ready
	@mkdir -p $(@D)
	$(call say,CC)$(other_version) -Ipreload $(preload_flags) -c - -o $@

$(other_versions)/%/collector.o: | $(B)/.ready
	@mkdir -p $(@D)
	$(call say,CC)$(other_version) -Icollector -Itools/shared -c - -o $@

$(other_versions)/%/other-library/libevprof.so: $(other_versions)/%/library.o $(programs)
	@mkdir -p $(@D) && cp $(programs) $(@D)/
	$(call say,LD)$(CC) $(CFLAGS) $(instrument) $(preload_link) $(LDFLAGS) -o $@ $< $(call without_twin,$(preload_objects)) \
		$(preload_libraries)

$(other_versions)/%/other-collector/evprof-collector: $(other_versions)/%/collector.o $(programs)
	@mkdir -p $(@D) && cp $(programs) $(@D)/
	$(call say,LD)$(CC) $(CFLAGS) $(instrument) $(LDFLAGS) -o $@ $< $(call without_twin,$(collector_objects)) \
		$(collector_libraries)

# The objects but that of the part of another version.
ring_twins := preload/ring/memory collector/ring/layout
protocol_twins := preload/join/handshake collector/base/control
without_twin = $(filter-out $(patsubst %,$(B)/%.o,$($*_twins)),$(1))

$(B)/tests/e2e/test_versions: | $(foreach kind,ring protocol,$(other_versions)/$(kind)/other-library/libevprof.so \
	$(other_versions)/$(kind)/other-collector/evprof-collector)

$(B)/tests/fuzz/fuzz_preload_%: $(B)/tests/fuzz/fuzz_preload_%.o $(fuzz_helpers) $(preload_objects)
	$(call say,LD)$(CC) $(CFLAGS) $(instrument) -fsanitize=fuzzer $(LDFLAGS) -o $@ $^ $(preload_libraries)

# With the program that has elfutils in it as a part of its own source.
$(B)/tests/fuzz/fuzz_symbols: $(B)/tests/fuzz/fuzz_symbols.o $(B)/tests/fuzz/elf_mutator.o \
	$(filter-out $(B)/collector/symbols/symbols.o,$(symbols_objects))
	$(call say,LD)$(CC) $(CFLAGS) $(instrument) -fsanitize=fuzzer $(LDFLAGS) -o $@ $^ $(symbols_libraries)

$(B)/tests/fuzz/fuzz_%: $(B)/tests/fuzz/fuzz_%.o $(fuzz_helpers) $(parts)
	$(call say,LD)$(CC) $(CFLAGS) $(instrument) -fsanitize=fuzzer $(LDFLAGS) -o $@ $(filter %.o,$^) \
		-Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(sort $(collector_libraries) $(tools_libraries))

$(B)/tests/fuzz/replay_symbols: $(B)/tests/fuzz/fuzz_symbols.o $(B)/tests/fuzz/replay.o $(B)/tests/fuzz/elf_mutator.o \
	$(filter-out $(B)/collector/symbols/symbols.o,$(symbols_objects))
	$(call say,LD)$(CC) $(CFLAGS) $(instrument) $(LDFLAGS) -o $@ $^ $(symbols_libraries)

$(B)/tests/fuzz/replay_%: $(B)/tests/fuzz/fuzz_%.o $(B)/tests/fuzz/replay.o $(fuzz_helpers) $(parts)
	$(call say,LD)$(CC) $(CFLAGS) $(instrument) $(LDFLAGS) -o $@ $(filter %.o,$^) \
		-Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(sort $(collector_libraries) $(tools_libraries))

# Without what stands in front of functions of the C library: the sanitizer does that itself.
$(B)/tests/stress/stress_preload_%: $(B)/tests/stress/stress_preload_%.o $(stress_helpers) \
		$(filter-out %/interpose.o,$(preload_objects)) $(B)/libcollector.a
	$(call say,LD)$(CC) $(CFLAGS) $(instrument) $(LDFLAGS) -o $@ $^ $(preload_libraries) $(collector_libraries)

$(B)/tests/stress/stress_preload_exchange: LDFLAGS += -Wl,--wrap=mmap

$(B)/tests/stress/stress_tools_%: $(B)/tests/stress/stress_tools_%.o $(B)/tests/unit/trace_fixture.o $(parts)
	$(call say,LD)$(CC) $(CFLAGS) $(instrument) $(LDFLAGS) -o $@ $(filter %.o,$^) \
		-Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(sort $(collector_libraries) $(tools_libraries))

$(B)/tests/stress/stress_%: $(B)/tests/stress/stress_%.o $(parts)
	$(call say,LD)$(CC) $(CFLAGS) $(instrument) $(LDFLAGS) -o $@ $(filter %.o,$^) \
		-Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(sort $(collector_libraries) $(tools_libraries))

.SECONDARY:
-include $(wildcard $(B)/*/*.d $(B)/*/*/*.d)

# ---- Test -----------------------------------------------------------------------------------------------------------

selected_tests := $(unit_tests) $(e2e_tests)
ifdef TESTS
selected_tests := $(filter $(addprefix %/,$(TESTS)),$(selected_tests))
endif

# One bound of time for all that is fetched. What could not be had is not tried again by the tests.
fetch_for_tests = . ./tools/scripts/bound.sh && CC='$(CC)' sh tools/scripts/setup.sh $(1) && sh tests/interpreters/packages.sh

.PHONY: test run-tests check-rules
test:
	@$(call fetch_for_tests,test)
	@EVPROF_TEST_BUILD=0 $(MAKE) --no-print-directory run-tests

# The Python package of a source tree finds its programs in build/, whatever is tested.
run-tests: $(programs) $(selected_tests)
	@$(if $(variant),$(MAKE) --no-print-directory DEBUG= ASAN= TSAN= COVERAGE= CC=cc all)
	@EVPROF_BUILD='$(abspath $(B))' TEST_TIMEOUT='$(TEST_TIMEOUT)' \
		sh tools/scripts/run_tests.sh $(if $(TESTS),,$(rules)) $(selected_tests)

check-rules: $(programs)
	@EVPROF_BUILD='$(abspath $(B))' sh tools/scripts/run_tests.sh $(rules)

# What differs between versions is the hook. The build with sanitizers, which checks the invariants, too, runs with one
# version of each kind of hook; that without, for what a sanitizer hides, with one. EVPROF_TEST_PYTHONS in the environment
# says which instead.
one_of_each_hook = $(or $(EVPROF_TEST_PYTHONS),3.8 3.11 3.13)
one_hook = $(or $(EVPROF_TEST_PYTHONS),3.13)

.PHONY: check-all lint format coverage
check-all:
	@export EVPROF_TEST_ALL=1; $(call fetch_for_tests,all)
	@$(MAKE) --no-print-directory lint
	@EVPROF_TEST_ALL=1 $(MAKE) --no-print-directory run-tests
	@EVPROF_TEST_ALL= EVPROF_TEST_PYTHONS='$(one_of_each_hook)' $(MAKE) --no-print-directory ASAN=1 run-tests
	@EVPROF_TEST_ALL= EVPROF_TEST_PYTHONS='$(one_hook)' $(MAKE) --no-print-directory DEBUG=1 run-tests
	@$(MAKE) --no-print-directory docs
	@$(MAKE) --no-print-directory musl
	@$(MAKE) --no-print-directory model
	@$(MAKE) --no-print-directory stress
	@$(MAKE) --no-print-directory TSAN=1 stress
	@$(MAKE) --no-print-directory fuzz

all_code = $(wildcard include/evprof/*.h preload/*/*.[ch] tools/shared/*/*.[ch] collector/*/*.[ch] tools/*/*.[ch] tests/*/*.[ch])
all_sources = $(preload_sources) $(shared_sources) $(collector_sources) $(symbols_sources) $(tools_sources)

lint:
	@sh tools/scripts/lint.sh '$(CLANG)' '$(base_flags)' $(all_code)

format:
	clang-format -i $(all_code)

coverage:
	@$(MAKE) --no-print-directory COVERAGE=1 run-tests
	@cd build-coverage && find preload collector tools -name '*.gcda' | LC_ALL=C xargs gcov -n 2>/dev/null | \
		awk -F"'" '/^File/ { file = $$2 } /^Lines/ && file ~ /^(preload|collector|tools)/ { print file ": " $$0; file = "" }'

# ---- Fuzz and bench -------------------------------------------------------------------------------------------------

.PHONY: fuzz fuzz-run bench bench-peers stress model musl
fuzz:
	@$(MAKE) --no-print-directory FUZZ=1 CC='$(CLANG)' fuzz-run

fuzz-run: $(fuzz_targets)
	@sh tools/scripts/run_fuzz.sh '$(FUZZ_SECONDS)' $(fuzz_targets)

# Programs of many threads with a main of their own; what TSAN=1 is for: neither criterion nor an unmodified Python runs
# under the thread sanitizer.
stress: $(stress_programs)
	@for program in $(stress_programs); do \
		echo "$$program"; timeout '$(TEST_TIMEOUT)' "$$program" || exit 1; \
	done

# The preloaded library for musl; skipped where musl-gcc is missing.
musl:
	@sh tools/scripts/musl.sh '$(B)/musl' '$(base_flags)' $(preload_sources)

# The protocol of the shared memory, every interleaving of small cases; skipped where spin is missing.
model:
	@CC='$(CC)' sh tests/model/run.sh

bench: all
	@EVPROF_BUILD='$(abspath $(B))' tests/bench/run

bench-peers: all
	@EVPROF_BENCH_PEERS=1 EVPROF_TEST_PYTHONS=3.13 sh tests/interpreters/packages.sh
	@EVPROF_BUILD='$(abspath $(B))' tests/bench/run --section peers --python 3.13 --python 3.15 --write-docs

# ---- Demo -----------------------------------------------------------------------------------------------------------

.PHONY: demo
demo:
	@CC='$(CC)' sh tools/scripts/setup.sh demo
	@$(MAKE) --no-print-directory all
	@sh tools/scripts/demo.sh '$(B)'

# ---- Install --------------------------------------------------------------------------------------------------------

bin_dir = $(PREFIX)/bin
lib_dir = $(PREFIX)/lib/evprof
include_dir = $(PREFIX)/include/evprof
man_dir = $(PREFIX)/share/man
unit_dir = $(PREFIX)/lib/systemd/system
sysusers_dir = $(PREFIX)/lib/sysusers.d
python_dir = $(lib_dir)/python
# SHELL:FOLDER/FILE below share/, where each shell looks by itself.
completions = bash:bash-completion/completions/evprof zsh:zsh/site-functions/_evprof fish:fish/vendor_completions.d/evprof.fish
D = $(DESTDIR)

# The unit names the collector by a path that systemd takes: absolute, and without quotes, which the commands below could not
# have, either.
define usable_prefix
$(if $(filter /%,$(firstword $(bin_dir))),,$(error PREFIX has to be an absolute path, not "$(PREFIX)"))
$(foreach one,' " \,$(if $(findstring $(one),$(PREFIX)$(D)),$(error PREFIX and DESTDIR cannot have $(one) in them)))
endef
# As systemd reads a path between quotes, written for sed.
unit_text = $(subst |,\|,$(subst &,\&,$(subst %,%%,$(1))))

.PHONY: install uninstall
install: all
	$(strip $(usable_prefix))
	install -d '$(D)$(bin_dir)' '$(D)$(lib_dir)' '$(D)$(include_dir)' '$(D)$(man_dir)/man1' '$(D)$(man_dir)/man7' \
		'$(D)$(unit_dir)' '$(D)$(sysusers_dir)' '$(D)$(python_dir)/evprof'
	install -m 755 $(B)/evprof $(B)/evprof-collector '$(D)$(bin_dir)'
	install -m 755 $(B)/libevprof.so $(B)/libevprof-reader.so $(B)/evprof-symbols '$(D)$(lib_dir)'
	install -m 644 include/evprof/evprof.h '$(D)$(include_dir)'
	install -m 644 tools/python/evprof/*.py tools/python/evprof/py.typed '$(D)$(python_dir)/evprof'
	install -m 644 collector/systemd/evprof.conf '$(D)$(sysusers_dir)'
	install -m 644 $(filter %.1,$(manuals)) '$(D)$(man_dir)/man1'
	install -m 644 $(filter %.7,$(manuals)) '$(D)$(man_dir)/man7'
	@for unit in $(units); do \
		target='$(D)$(unit_dir)'/$$(basename "$$unit" .in); \
		echo "install $$unit as $$target"; \
		sed 's|@BINDIR@|$(call unit_text,$(bin_dir))|g; s|@LIBDIR@|$(call unit_text,$(lib_dir))|g' "$$unit" >"$$target" && \
			chmod 644 "$$target" || exit 1; \
	done
	@for one in $(completions); do \
		target='$(D)$(PREFIX)/share'/$${one#*:}; \
		echo "install completion of $${one%%:*} as $$target"; \
		install -d "$${target%/*}" && $(B)/evprof completion "$${one%%:*}" >"$$target" && chmod 644 "$$target" || exit 1; \
	done

# For `import evprof`: a .pth in the site-packages of $(PYTHON) that names the installed package's folder.
PYTHON = python3
find_pth = pth='$(D)'$$($(PYTHON) -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/evprof.pth && \
	test "$$pth" != '$(D)/evprof.pth'

.PHONY: install-python uninstall-python
install-python:
	$(strip $(usable_prefix))
	@$(find_pth) && install -d "$${pth%/*}" && printf '%s\n' '$(python_dir)' >"$$pth" && chmod 644 "$$pth" && \
		echo "install $$pth"

uninstall-python:
	@$(find_pth) && rm -f "$$pth"

uninstall:
	rm -f '$(D)$(bin_dir)/evprof' '$(D)$(bin_dir)/evprof-collector'
	rm -f '$(D)$(lib_dir)/libevprof.so' '$(D)$(lib_dir)/libevprof-reader.so' '$(D)$(lib_dir)/evprof-symbols'
	rm -f '$(D)$(include_dir)/evprof.h'
	rm -f $(foreach page,$(manuals),'$(D)$(man_dir)/man$(subst .,,$(suffix $(page)))/$(notdir $(page))')
	rm -f $(foreach unit,$(units),'$(D)$(unit_dir)/$(notdir $(unit:.in=))') '$(D)$(sysusers_dir)/evprof.conf'
	rm -f $(foreach one,$(completions),'$(D)$(PREFIX)/share/$(lastword $(subst :, ,$(one)))')
	rm -rf '$(D)$(python_dir)'
	-rmdir '$(D)$(lib_dir)' '$(D)$(include_dir)' 2>/dev/null

# ---- Packages -------------------------------------------------------------------------------------------------------

MACHINES = x86_64 aarch64

.PHONY: wheel sdist deb rpm release-check
wheel:
	@sh tools/packaging/wheel.sh $(MACHINES)

sdist:
	@sh tools/packaging/sdist.sh

deb:
	@sh tools/packaging/build_packages.sh deb

rpm:
	@sh tools/packaging/build_packages.sh rpm

release-check: wheel sdist
	@sh tools/packaging/release_check.sh

# The site of README.md, docs/, the man pages and the package.
.PHONY: docs
docs:
	@sh tools/scripts/setup.sh docs && sh tools/docs/site.sh $(B)/site

.PHONY: clean
clean:
	rm -rf build build-* dist
