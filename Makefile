# tfhook's build. `make help` lists targets and settings.
#
# Every folder of lib/ is taken in by wildcard, so a new file needs no line here. Sets of objects are made of it, because they
# go to different places:
#   job    base format sampling record hook   position-independent, hidden, initial-exec TLS: loaded into the job
#   core   all but hook and sim           the command and the tests
#   shared base format                    libtft.so
#   (glibc/ is linked into all products and none of the tests)
#   sim    base sim                       the simulated driver, CUPTI and NCCL
MAKEFLAGS += --no-builtin-rules
.SUFFIXES:
.DELETE_ON_ERROR:
.DEFAULT_GOAL := all

ifeq ($(origin CC),default)
CC := gcc
endif
CXX := $(if $(findstring clang,$(CC)),clang++,g++)
AR ?= ar
CFLAGS ?= -O2 -g
CXXFLAGS ?= $(CFLAGS)
PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
DESTDIR ?=
O ?= build
SAN ?=
CUDA_GEN ?=
SIM ?= yes
T ?=
DEMO ?=
JOBS ?= $(shell nproc)
Q := $(if $(V),,@)
say = $(if $(V),,@printf '  %-5s %s\n' '$1' '$(patsubst $(CURDIR)/%,%,$2)';)

# A sanitizer has its own object folder next to the plain one.
comma := ,
B := $(O)$(if $(SAN),-$(subst $(comma),-,$(SAN)))# the linker takes no comma in a file's name

sources = $(filter-out lib/sim/gpu/variants/%,$(wildcard $(foreach f,$1,lib/$f/*.c lib/$f/*/*.c lib/$f/*.S lib/$f/*/*.S)))
objects = $(patsubst lib/%,$(B)/obj/$1/%.o,$(basename $2))

# What walks stacks is part of the recorder: fetched and built once for all builds here, if that is possible.
UNWIND := $(O)/libunwind
$(UNWIND)/libunwind.mk: scripts/libunwind scripts/libunwind.patch
	$(call say,GET,$(@D))scripts/libunwind $(@D) $(CC) '$(CPPFLAGS)' '$(LDFLAGS)'
UNWIND_O = $(if $(LIBUNWIND),$(UNWIND)/libunwind.o)
UNWIND_C = $(if $(LIBUNWIND),-DTFH_LIBUNWIND -isystem $(UNWIND)/include)

# --- what must be on the machine, before anything is compiled ---------------------------------------------------
# Compiling names what is missing; only what brings its own environment installs it: deps, the demo and the tests.
NO_BUILD := clean deps distclean format help uninstall fuzz
INSTALLING := check check-% demo soak torture truth truth-%
GOALS := $(or $(MAKECMDGOALS),all)
BOOTSTRAP := scripts/bootstrap $(if $(filter $(INSTALLING),$(GOALS)),,--look)
ifneq ($(filter-out $(NO_BUILD),$(GOALS)),)
ifeq ($(findstring n,$(firstword -$(filter-out --%,$(MAKEFLAGS)))),)
# CUDA's headers are looked for, and downloaded, only when some source asks for them.
USES_CUDA := $(or $(CUDA_GEN),$(shell grep -lE '^ *\# *include *<(cuda|cupti)' lib/*/*.[chS] lib/*/*/*.[chS] tests/*/*.c bench/*.c 2>/dev/null))
ifneq ($(shell $(BOOTSTRAP) >&2 && $(if $(USES_CUDA),scripts/cuda-headers $(B)/cuda.mk $(CUDA_GEN) >&2 &&) echo ready),ready)
$(error something is missing; see above)
endif
include $(UNWIND)/libunwind.mk
endif
ifneq ($(USES_CUDA),)
-include $(B)/cuda.mk
endif
endif

# The processor that CC compiles for, and the name of its dynamic loader; CC may have been installed just now.
ARCH := $(firstword $(subst -, ,$(shell $(CC) -dumpmachine 2>/dev/null)))
LOADER := $(if $(filter aarch64,$(ARCH)),ld-linux-aarch64.so.1,ld-linux-x86-64.so.2)

# --- flags -------------------------------------------------------------------------------------------------------
WARN := -Wall -Wextra -Wshadow -Werror
WARN_C := $(WARN) -Wstrict-prototypes
SAN_FLAGS := $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer $(if $(findstring undefined,$(SAN)),-fno-sanitize-recover=all) \
	$(if $(findstring clang,$(CC)),,$(if $(filter thread,$(SAN)),-Wno-tsan)))# gcc's knows no fences, which stand between processes
# As on x86-64, so that a recording's report is the same: no fused multiplications, and char has a sign.
ALIKE := $(if $(filter aarch64,$(ARCH)), -ffp-contract=off -fsigned-char)
BASE_C := -std=gnu11$(ALIKE) -D_GNU_SOURCE -Ilib -Iinclude $(WARN_C) $(SAN_FLAGS) -pthread
# CUDA's headers are not ours to warn about.
CUDA_C := $(addprefix -isystem ,$(CUDA_INC))

FLAGS_job := $(BASE_C) -fPIC -fvisibility=hidden -fno-semantic-interposition -ftls-model=initial-exec $(CUDA_C)
# Times of a damaged file may be any numbers, so their sums wrap; UBSan is to see overflows in what is not damaged.
FLAGS_core := $(BASE_C) -fPIE $(if $(findstring undefined,$(SAN)),,-fwrapv)
FLAGS_shared := $(BASE_C) -fPIC -fno-semantic-interposition
FLAGS_sim := $(BASE_C) -fPIC -fno-semantic-interposition $(CUDA_C)
FLAGS_sched := $(BASE_C) -iquote tests/torture/sched -include tests/torture/sched/points.h
FLAGS_test := $(BASE_C) $(CUDA_C)
FLAGS_testcc := -std=gnu++17 -Ilib -Iinclude $(WARN) $(SAN_FLAGS) -pthread $(CUDA_C)

ZSTD := -l:libzstd.a
# Only the command reads files of gzip and draws screens.
COMMAND := -l:libz.a -l:libncursesw.a -l:libtinfo.a
LIBS := $(ZSTD) -ldl -lpthread -lm
# clang leaves the sanitizers' symbols of a shared object to the program.
NO_UNDEFINED := $(if $(and $(SAN),$(findstring clang,$(CC))),,-Wl$(comma)-z$(comma)defs)
LD_SHARED := -shared $(NO_UNDEFINED) -Wl,--exclude-libs,ALL -Wl,--hash-style=gnu $(SAN_FLAGS)

# Products need glibc 2.17 and nothing newer (lib/glibc/README.md). What a sanitizer is linked with needs today's.
GLIBC := $(addprefix $(B)/glibc/,libc.so.6 libm.so.6 libpthread.so.0 libdl.so.2 librt.so.1 $(LOADER))
STANDINS := $(B)/glibc/libstandins.a
OLD := $(if $(SAN),,$(STANDINS) $(GLIBC))
LINKED := $(if $(SAN),$(LIBS) -static-libgcc,-nodefaultlibs $(ZSTD) $(STANDINS) -Wl,--as-needed $(GLIBC) -lgcc)
# The last line of a link that failed for a name that 2.17 lacks.
explain = || { echo 'tfhook needs no glibc newer than 2.17: what is undefined above may be newer (lib/glibc/README.md)' >&2; false; }

# --- sources and products ----------------------------------------------------------------------------------------
# A sanitizer of ours is to see what is copied.
# Other processes' interpreters are the command's matter.
SRC_job := $(filter-out lib/sampling/outside.c $(if $(SAN),lib/hook/string_functions.c),$(call sources,base format sampling record hook))
SRC_core := $(filter-out lib/cli/main.c,$(call sources,base format sampling record sqlite model import judge report export digest ranks diff top cli))
SRC_main := lib/cli/main.c
SRC_shared := $(call sources,base format)
SRC_sim := $(call sources,base sim/gpu)
SRC_cupti := $(filter-out lib/sim/cupti/generation.c,$(call sources,sim/cupti))
SRC_nccl := $(call sources,sim/nccl)
SRC_nvml := $(call sources,sim/nvml)
OBJ_job := $(call objects,job,$(SRC_job))
OBJ_page := $(if $(wildcard lib/report/page/page.css),$(B)/obj/core/page_files.o)
UPLOT := $(O)/uplot
OBJ_core := $(call objects,core,$(SRC_core)) $(OBJ_page)
OBJ_main := $(call objects,core,$(SRC_main))
OBJ_shared := $(call objects,shared,$(SRC_shared))
OBJ_sim := $(call objects,sim,$(SRC_sim))
OBJ_cupti := $(call objects,sim,$(SRC_cupti))
OBJ_nccl := $(call objects,sim,$(SRC_nccl))
OBJ_nvml := $(call objects,sim,$(SRC_nvml))
OBJ_audit := $(call objects,job,$(wildcard lib/audit/*.c))
OBJ_generations := $(patsubst %,$(B)/obj/sim/sim/cupti/generation.%.o,12 13)

CORE_A := $(B)/lib/libtfh_core.a
HOOK_SO := $(B)/lib/libtfhook.so
NOEXPORT_SO := $(B)/lib/libtfhook-noexport.so
# For libraries that no preload reaches; it shares nothing with the others.
AUDIT_SO := $(B)/lib/libtfhook-audit.so
PRELOADS := $(HOOK_SO) $(NOEXPORT_SO) $(AUDIT_SO)
LIB_FOLDERS := lib lib64 lib/$(ARCH)-linux-gnu
# 32-bit programs find an empty library there: Debian's i386, and what other distributions call lib32.
EMPTY_FOLDERS := $(if $(filter x86_64,$(ARCH)),lib/i386-linux-gnu lib32)
EMPTY_LIBS := $(foreach d,$(EMPTY_FOLDERS),$(patsubst $(B)/lib/%,$(B)/lib/$d/%,$(HOOK_SO) $(NOEXPORT_SO)))
LIB_LINKS := $(foreach d,$(LIB_FOLDERS),$(patsubst $(B)/lib/%,$(B)/lib/$d/%,$(PRELOADS))) $(EMPTY_LIBS)
TFT := $(B)/lib/libtft.a $(B)/lib/libtft.so
TFHOOK := $(B)/bin/tfhook
# The test bed, which the demo needs, too; SIM=no leaves it out.
SIMULATORS := $(if $(filter no,$(SIM)),,$(foreach d,sim sim/old sim/future,$(B)/$d/libcuda.so.1 $(B)/$d/libcuda.so) \
	$(addprefix $(B)/sim/libcupti.so,.13 .12) $(B)/sim/libcupti.so $(B)/sim/libnccl.so.2 \
	$(foreach d,sim sim/old,$(B)/$d/libnvidia-ml.so.1))
# The demo's scripts, where an installed command has them.
SHARE := $(B)/share/tfhook
# Made of the tables of commands and settings; tft(5) is written by hand.
MAN := $(patsubst %,$(B)/man/tfhook-%.1,$(shell sed -n '/^const struct tfh_command tfh_cmd_/{n;s/.*name = "\([a-z]*\)".*/\1/p}' $(wildcard lib/cli/*.c) </dev/null)) \
	$(B)/man/tfhook.7 $(B)/man/tft.5
PRODUCTS := $(SHARE) $(HOOK_SO) $(NOEXPORT_SO) $(AUDIT_SO) $(CORE_A) $(TFT) $(TFHOOK) $(SIMULATORS) $(LIB_LINKS) $(MAN)

# With T= only the unit tests that match are built, and the helper programs of areas with a script that matches.
match = $(if $(T),$(shell printf '%s\n' $1 | grep -E -- '$(T)'),$1)
ALL_AREAS := record hook python tf frameworks sim analyze digest ranks diff import export cli page package fleet golden jobs clients truth fuzz torture
AREAS := $(if $(T),$(foreach a,$(ALL_AREAS),$(if $(strip $(call match,$(wildcard tests/$a/*.sh tests/$a/*.py))),$a)),$(ALL_AREAS))
# Areas whose programs the tests of an area, or a target, also use: a client to record, a program that reads recordings.
NEEDS_truth := import jobs
NEEDS_torture := record
NEEDS_frameworks := tf
NEEDS_hook := sim jobs truth
NEEDS_record := hook
NEEDS_python := hook jobs
NEEDS_clients := hook
NEEDS_digest := hook jobs
NEEDS_diff := hook jobs
NEEDS_page := jobs analyze ranks
NEEDS_cli := jobs
NEEDS_export := jobs
NEEDS_fleet := jobs
NEEDS_golden := jobs
NEEDS_bench := jobs analyze ranks
NEEDS_soak := jobs record
NEEDS_check-aarch64 := jobs
NEEDS_check-clients := hook
NEEDS_check-glibc := hook
NEEDS_check-gpu := hook jobs
NEEDS_check-invisible := invisible
NEEDS_check-upgrade := hook
AREAS += $(filter-out $(AREAS),$(filter truth torture soak,$(GOALS)))
# Thrice, since what is needed needs others.
AREAS += $(filter-out $(AREAS),$(sort $(foreach a,$(AREAS) $(GOALS),$(NEEDS_$a))))
AREAS += $(filter-out $(AREAS),$(sort $(foreach a,$(AREAS),$(NEEDS_$a))))
AREAS += $(filter-out $(AREAS),$(sort $(foreach a,$(AREAS),$(NEEDS_$a))))
UNIT_C := $(sort $(wildcard $(addprefix tests/unit/,test_*.c */test_*.c */*/test_*.c)))
UNIT := $(patsubst %.c,$(B)/%,$(call match,$(UNIT_C)))
AREA_C := $(filter-out tests/fuzz/%,$(wildcard $(AREAS:%=tests/%/*.c)))
AREA_CC := $(wildcard $(AREAS:%=tests/%/*.cc))
is_lib = $(foreach f,$1,$(if $(filter lib%,$(notdir $f)),$f))
AREA_LIBS := $(patsubst %,$(B)/%.so,$(basename $(call is_lib,$(AREA_C) $(AREA_CC))))
AREA_PROGS := $(patsubst %,$(B)/%,$(basename $(filter-out $(call is_lib,$(AREA_C) $(AREA_CC)),$(AREA_C) $(AREA_CC))))
# The schedule fuzzer: the recorder compiled with points at which threads change (tests/torture/sched/points.h), without
# what its harness makes of memory.
SRC_sched := $(filter-out $(addprefix lib/record/,process/apart.c run/place.c run/rundir.c run/runjson_write.c write/segments.c),$(call sources,record))
OBJ_sched := $(call objects,sched,$(SRC_sched))
OBJ_harness := $(patsubst tests/torture/sched/%.c,$(B)/obj/harness/%.o,$(wildcard tests/torture/sched/*.c))
SCHEDULES := $(if $(filter torture,$(AREAS)),$(B)/tests/torture/schedules $(B)/tests/torture/ring)
# The reader of Python's stacks as a library of its own, for interpreters to compare with.
# The command as a build without npm or a network makes it.
BARE := $(if $(filter page,$(AREAS)),$(B)/tests/page/tfhook-bare)
UNWOUND := $(if $(filter hook,$(AREAS)),$(B)/tests/hook/libtfhook-libgcc.so)
READER := $(if $(filter python,$(AREAS)),$(if $(SAN),,$(B)/tests/python/libreader.so))
BENCH := $(patsubst %.c,$(B)/%,$(filter-out bench/lib%.c,$(wildcard bench/*.c)))
BENCH_LIBS := $(patsubst %.c,$(B)/%.so,$(wildcard bench/lib*.c))
FUZZ := $(patsubst %.c,$(B)/%,$(wildcard tests/fuzz/fuzz_*.c))
FUZZ_PARTS := $(filter-out tests/fuzz/fuzz_%.c tests/fuzz/replay.c,$(wildcard tests/fuzz/*.c))
# The same targets without libFuzzer, for the inputs that are kept.
REPLAY := $(if $(filter fuzz,$(AREAS)),$(FUZZ:$(B)/tests/fuzz/fuzz_%=$(B)/tests/fuzz/replay_%))

.PHONY: all ablate analyze demo check check-aarch64 check-clients check-diff check-export check-fleet check-frameworks check-glibc check-gpu check-import check-install check-invisible check-libraries check-upgrade check-wheels evidence families scenarios strangers truth truth-pipelines truth-random tests bench fuzz fuzz-run sensitivity soak torture install uninstall wheel deb conda clean distclean format \
	compile_commands.json deps python-env help FORCE
#: make [all]            build everything into build/ (O=dir for another place; SIM=no: without the simulators)
all: $(PRODUCTS)
tests: all $(if $(filter package,$(AREAS)),$(OLD_PROGS)) $(UNIT) $(AREA_PROGS) $(AREA_LIBS) $(REPLAY) $(SCHEDULES) $(READER) $(BARE) $(UNWOUND) $(if $(T),,$(BENCH) $(BENCH_LIBS))

# --- a file that changes when a command line or a list of objects changes, so that what depends on it is remade --
stamp = $(B)/flags/$1
define stamp-rule
$(B)/flags/$1: FORCE
	@mkdir -p $$(@D); printf '%s\n' '$$(subst ','\'',$2)' | cmp -s - $$@ || printf '%s\n' '$$(subst ','\'',$2)' >$$@
endef
COMPILE_job = $(CC) $(CPPFLAGS) $(FLAGS_job) $(CFLAGS)
COMPILE_core = $(CC) $(CPPFLAGS) $(FLAGS_core) $(CFLAGS)
COMPILE_shared = $(CC) $(CPPFLAGS) $(FLAGS_shared) $(CFLAGS)
COMPILE_sim = $(CC) $(CPPFLAGS) $(FLAGS_sim) $(CFLAGS)
COMPILE_sched = $(CC) $(CPPFLAGS) $(FLAGS_sched) $(CFLAGS)
COMPILE_test = $(CC) $(CPPFLAGS) $(FLAGS_test) $(CFLAGS)
COMPILE_harness = $(COMPILE_test) -iquote tests/torture/sched
COMPILE_testcc = $(CXX) $(CPPFLAGS) $(FLAGS_testcc) $(CXXFLAGS)
$(foreach s,job core shared sim sched test testcc,$(eval $(call stamp-rule,$s,$$(COMPILE_$s))))
$(foreach s,job core shared sim sched harness,$(eval $(call stamp-rule,objects-$s,$$(OBJ_$s) $$(LDFLAGS))))
$(eval $(call stamp-rule,objects-cupti,$$(OBJ_cupti) $$(LDFLAGS)))
$(eval $(call stamp-rule,objects-nccl,$$(OBJ_nccl) $$(LDFLAGS)))
$(eval $(call stamp-rule,objects-nvml,$$(OBJ_nvml) $$(LDFLAGS)))

# An object is as old as the beginning of its compilation: who saves a header meanwhile gets it made anew, where its end
# would have passed for newer than what it was not made of. It depends on its list of headers, so that without one it is
# made anew, too.
define compile
	@mkdir -p $(@D) && : >$@.begin
	$(call say,$1,$<)$(COMPILE_$2) -MMD -MP -c -o $@ $< && touch -r $@.begin $@ $(@:.o=.d) && rm $@.begin
endef
define object-rules
$(B)/obj/$1/%.o: lib/%.c $(B)/obj/$1/%.d $(call stamp,$1)
	$$(call compile,CC,$1)
$(B)/obj/$1/%.o: lib/%.S $(B)/obj/$1/%.d $(call stamp,$1)
	$$(call compile,AS,$1)
endef
$(foreach s,job core shared sim sched,$(eval $(call object-rules,$s)))

# Only what walks stacks, and what reports it.
$(B)/obj/job/hook/unwind.o $(B)/obj/core/cli/doctor_gpu.o: $(UNWIND)/libunwind.mk
$(B)/obj/job/hook/unwind.o: private FLAGS_job += $(UNWIND_C)
$(B)/obj/core/cli/doctor_gpu.o: private FLAGS_core += $(UNWIND_C)

# Vectors of two or four values that are just being computed cost more instructions than as many stores.
$(addprefix $(B)/obj/job/hook/,driver/wrap.o driver/note.o tf/call.o): private FLAGS_job += -fno-tree-slp-vectorize
$(B)/bench/hook_cost: private FLAGS_test += -fno-tree-slp-vectorize
$(B)/obj/job/hook/string_functions.o: private FLAGS_job += -fno-builtin
$(B)/tests/hook/string_functions: private FLAGS_test += -fno-builtin

# --- libraries and the command -----------------------------------------------------------------------------------
$(GLIBC): $(B)/glibc/%: lib/glibc/2.17-$(ARCH).abi scripts/gen-glibc
	@mkdir -p $(@D)
	$(call say,GEN,$@)scripts/gen-glibc $* $@.map <$< >$@.s && \
		$(CC) -shared -nostdlib -Wl,-soname,$* -Wl,--version-script=$@.map -o $@ $@.s

OBJ_standins := $(call objects,job,$(wildcard lib/glibc/*.c))
$(STANDINS): $(OBJ_standins)
	@mkdir -p $(@D)
	$(call say,AR,$@)rm -f $@ && $(AR) qcs $@ $(OBJ_standins)

# A digest says which judge made it: a number that changes with everything that decides what it says.
JUDGE_SRC := $(sort $(wildcard lib/base/*.def $(foreach f,model import judge digest,lib/$f/*.[ch] lib/$f/*/*.[ch] lib/$f/*.def lib/$f/*/*.def)))
$(B)/obj/core/digest/judge_id.o: $(JUDGE_SRC)
$(B)/obj/core/digest/judge_id.o: private FLAGS_core += -DTFH_JUDGE_ID='"$(shell cat $(JUDGE_SRC) | cksum | cut -d' ' -f1)"'

$(CORE_A): $(OBJ_core) $(call stamp,objects-core)
	@mkdir -p $(@D)
	$(call say,AR,$@)rm -f $@ && $(AR) qcs $@ $(OBJ_core)

# What every page of `report --html` contains.
PAGE_FILES := $(addprefix lib/report/page/,page.css page.js charts.js timeline.js)
$(B)/page/files.c: $(PAGE_FILES) scripts/gen-page $(UPLOT)/.stamp
	@mkdir -p $(@D)
	$(call say,GEN,$@)scripts/gen-page $@ $$(find $(UPLOT) -name 'uPlot*') $(PAGE_FILES)

$(B)/tests/page/tfhook-bare: $(B)/bin/tfhook $(PAGE_FILES) scripts/gen-page
	@mkdir -p $(@D)
	$(call say,LD,$@)scripts/gen-page $@.c $(PAGE_FILES) && $(COMPILE_core) -c -o $@.o $@.c && \
		$(CC) $(CFLAGS) $(LDFLAGS) $(SAN_FLAGS) -pie -o $@ $(OBJ_main) $@.o $(CORE_A) $(COMMAND) $(LINKED)

# Downloaded once for all builds here, if that is possible.
$(UPLOT)/.stamp: scripts/uplot
	$(call say,GET,$(@D))scripts/uplot $(@D) && touch $@

$(B)/obj/core/page_files.o: $(B)/page/files.c $(call stamp,core)
	@mkdir -p $(@D)
	$(call say,CC,$<)$(COMPILE_core) -c -o $@ $<

$(B)/lib/libtft.a: $(OBJ_shared) $(call stamp,objects-shared)
	@mkdir -p $(@D)
	$(call say,AR,$@)rm -f $@ && $(AR) qcs $@ $(OBJ_shared)

$(B)/lib/libtft.so: $(OBJ_shared) $(call stamp,objects-shared) $(B)/lib/libtft.map $(OLD)
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(CFLAGS) $(LDFLAGS) $(LD_SHARED) -Wl,-soname,libtft.so.0 \
		-Wl,--version-script=$(B)/lib/libtft.map -o $@ $(OBJ_shared) $(LINKED) $(explain)

$(B)/lib/libtft.map: Makefile
	@mkdir -p $(@D)
	@printf '{ global: tft_file_*; local: *; };\n' >$@

# Links for what loaders put in the place of $$LIB (lib/cli/library.c).
define lib-link-rule
$(B)/lib/$1/$2: | $(B)/lib/$2
	@mkdir -p $$(@D)
	@ln -sf $(if $(findstring /,$1),../)../$2 $$@
endef
$(foreach d,$(LIB_FOLDERS),$(foreach f,$(notdir $(PRELOADS)),$(eval $(call lib-link-rule,$d,$f))))

# Without the mark for the stack, the loader would make the program's stack executable.
$(EMPTY_LIBS):
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) -m32 -nostdlib -shared -s -Wl,-z,noexecstack,-z,norelro,-z,noseparate-code,--build-id=none \
		-o $@ -x assembler /dev/null

# nodelete: threads of the job may be inside a wrapper when somebody calls dlclose.
LINK_HOOK = $(CC) $(CFLAGS) $(LDFLAGS) $(LD_SHARED) -Wl,-z,now -Wl,-z,nodelete \
	-Wl$(comma)--version-script=$(filter %.map,$^) -o $@ $(filter %.o,$^) $(UNWIND_O) $(LINKED) $(explain)
$(B)/lib/libtfhook.so: $(OBJ_job) $(call stamp,objects-job) $(B)/lib/libtfhook.map $(OLD)
	@mkdir -p $(@D)
	$(call say,LD,$@)$(LINK_HOOK)

# As where libunwind could not be had.
$(B)/tests/hook/unwind.libgcc.o: lib/hook/unwind.c $(OBJ_job)
	$(call say,TEST,$<)mkdir -p $(@D) && $(COMPILE_job) -c -o $@ $<
$(B)/tests/hook/libtfhook-libgcc.so: private UNWIND_O :=
$(B)/tests/hook/libtfhook-libgcc.so: $(filter-out %/unwind.o,$(OBJ_job)) $(B)/tests/hook/unwind.libgcc.o $(B)/lib/libtfhook.map $(OLD)
	$(call say,TEST,$@)$(LINK_HOOK)

$(B)/lib/libtfhook-noexport.so: $(OBJ_job) $(call stamp,objects-job) $(B)/lib/libtfhook-noexport.map $(OLD)
	@mkdir -p $(@D)
	$(call say,LD,$@)$(LINK_HOOK)

# It comes before any sanitizer.
PLAIN := $(if $(SAN),-fno-sanitize=all)
$(OBJ_audit): private FLAGS_job += $(PLAIN)
$(B)/lib/libtfhook-audit.so: $(OBJ_audit) $(OLD)
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(CFLAGS) $(LDFLAGS) $(LD_SHARED) $(PLAIN) -o $@ $(OBJ_audit) $(LINKED) $(explain)

$(B)/lib/libtfhook.map: scripts/gen-exports lib/base/cuda_api.def lib/base/nccl_api.def lib/base/tf_api.def
	@mkdir -p $(@D)
	$(Q)scripts/gen-exports >$@

$(B)/lib/libtfhook-noexport.map: scripts/gen-exports lib/base/tf_api.def
	@mkdir -p $(@D)
	$(Q)scripts/gen-exports --no-driver >$@

$(B)/bin/tfhook: $(OBJ_main) $(CORE_A) $(OLD)
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(CFLAGS) $(LDFLAGS) $(SAN_FLAGS) -pie -o $@ $(OBJ_main) $(CORE_A) $(COMMAND) $(LINKED) $(explain)

$(B)/man/tfhook-%.1: $(B)/bin/tfhook
	@mkdir -p $(@D)
	$(call say,MAN,$@)$< help --man $* >$@

$(B)/man/tfhook.7: $(B)/bin/tfhook
	@mkdir -p $(@D)
	$(call say,MAN,$@)$< help --man >$@

$(B)/man/tft.5: docs/man/tft.5
	@mkdir -p $(@D)
	$(call say,MAN,$@)cp $< $@

$(B)/share/tfhook: | scripts/demo
	@mkdir -p $(@D)
	@ln -sfn $(CURDIR)/scripts $@

SIM_MAP := $(B)/sim/libcuda.map
$(B)/sim/libcuda.so.1: $(OBJ_sim) $(call stamp,objects-sim) $(SIM_MAP) $(OLD)
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(CFLAGS) $(LDFLAGS) $(LD_SHARED) -Wl,-Bsymbolic -Wl,-soname,libcuda.so.1 \
		-Wl,--version-script=$(SIM_MAP) -o $@ $(OBJ_sim) $(LINKED) $(explain)

$(B)/sim/libcuda.map: Makefile
	@mkdir -p $(@D)
	@printf '{ global: cu*; local: *; };\n' >$@

# The same driver as an older and as a newer one (lib/sim/gpu/variants).
OBJ_variants := $(patsubst %,$(B)/obj/sim/sim/gpu/variants/%.o,old future)
DIFFERENT_future := -Wl,--defsym=cuEventDestroy=cuEventDestroy_v2
$(B)/sim/old/libcuda.so.1 $(B)/sim/future/libcuda.so.1: $(B)/sim/%/libcuda.so.1: $(B)/obj/sim/sim/gpu/variants/%.o \
		$(OBJ_sim) $(call stamp,objects-sim) $(B)/sim/%/libcuda.map $(OLD)
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(CFLAGS) $(LDFLAGS) $(LD_SHARED) -Wl,-Bsymbolic -Wl,-soname,libcuda.so.1 \
		$(DIFFERENT_$*) -Wl,--version-script=$(B)/sim/$*/libcuda.map -o $@ $< $(OBJ_sim) $(LINKED) $(explain)

$(B)/sim/future/libcuda.map: $(SIM_MAP)
	@mkdir -p $(@D)
	@cp $< $@

$(B)/sim/old/libcuda.map: lib/sim/gpu/entry/exports.def
	@mkdir -p $(@D)
	@awk -F'[(, )]+' 'BEGIN { printf "{ global: cu*; local: cuGetProcAddress_v2;" } \
		$$1 == "SIM_EXPORT" && $$4 > 11080 { printf " %s;", $$2 } END { print " *; };" }' $< >$@

$(B)/sim/old/libcuda.so $(B)/sim/future/libcuda.so: %/libcuda.so: %/libcuda.so.1
	@ln -sf libcuda.so.1 $@

$(B)/sim/libcuda.so: $(B)/sim/libcuda.so.1
	@ln -sf libcuda.so.1 $@

# One library for each generation of CUPTI: the same objects, but for one number.
$(OBJ_generations): $(B)/obj/sim/sim/cupti/generation.%.o: lib/sim/cupti/generation.c $(B)/obj/sim/sim/cupti/generation.%.d $(call stamp,sim)
	$(call compile,CC,sim)

$(foreach g,12 13,$(eval $(B)/obj/sim/sim/cupti/generation.$g.o: private FLAGS_sim += -DSIM_CUPTI_GENERATION=$g))

$(addprefix $(B)/sim/libcupti.so.,12 13): $(B)/sim/libcupti.so.%: $(B)/obj/sim/sim/cupti/generation.%.o $(OBJ_cupti) $(call stamp,objects-cupti) $(B)/sim/libcupti.map $(OLD)
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(CFLAGS) $(LDFLAGS) $(LD_SHARED) -Wl,-Bsymbolic -Wl,-soname,libcupti.so.$* \
		-Wl,--version-script=$(B)/sim/libcupti.map -o $@ $< $(OBJ_cupti) $(LINKED) $(explain)

$(B)/sim/libcupti.map: Makefile
	@mkdir -p $(@D)
	@printf '{ global: cupti*; local: *; };\n' >$@

$(B)/sim/libcupti.so: $(B)/sim/libcupti.so.13
	@ln -sf libcupti.so.13 $@

$(B)/sim/libnccl.so.2: $(OBJ_nccl) $(call stamp,objects-nccl) $(B)/sim/libnccl.map $(OLD)
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(CFLAGS) $(LDFLAGS) $(LD_SHARED) -Wl,-Bsymbolic -Wl,-soname,libnccl.so.2 \
		-Wl,--version-script=$(B)/sim/libnccl.map -o $@ $(OBJ_nccl) $(LINKED) $(explain)

$(B)/sim/libnvidia-ml.so.1 $(B)/sim/old/libnvidia-ml.so.1: %/libnvidia-ml.so.1: $(OBJ_nvml) $(call stamp,objects-nvml) %/libnvidia-ml.map $(OLD)
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(CFLAGS) $(LDFLAGS) $(LD_SHARED) -Wl,-Bsymbolic -Wl,-soname,libnvidia-ml.so.1 \
		-Wl,--version-script=$*/libnvidia-ml.map -o $@ $(OBJ_nvml) $(LINKED) $(explain)

# The older one is of the time before events had instances, fields could be asked for and reasons were renamed.
$(B)/sim/libnvidia-ml.map $(B)/sim/old/libnvidia-ml.map: Makefile
	@mkdir -p $(@D)
	@printf '{ global: nvml*; local: %s *; };\n' \
		'$(if $(findstring /old/,$@),nvmlEventSetWait_v2; nvmlDeviceGetFieldValues; nvmlDeviceGetCurrentClocksEventReasons;)' >$@

$(B)/sim/libnccl.map: Makefile
	@printf '{ global: nccl*; local: *; };\n' >$@

# --- tests -------------------------------------------------------------------------------------------------------
$(UNIT): $(B)/%: %.c $(CORE_A) $(call stamp,test)
	@mkdir -p $(@D)
	$(call say,TEST,$<)$(COMPILE_test) $(LDFLAGS) -MMD -MP -MF $@.d -o $@ $< $(CORE_A) -lcmocka $(COMMAND) $(LIBS)

# Linked as the products are, so that they run wherever these do.
OLD_PROGS := $(B)/tests/glibc/client $(B)/tests/hook/stacks
$(OLD_PROGS): $(B)/%: %.c $(OLD) $(call stamp,core)
	@mkdir -p $(@D)
	$(call say,TEST,$<)$(COMPILE_core) $(LDFLAGS) -pie -MMD -MP -MF $@.d -o $@ $< $(LINKED) $(explain)

$(filter-out $(OLD_PROGS),$(filter $(basename $(AREA_C:%=$(B)/%)),$(AREA_PROGS))) $(BENCH): $(B)/%: %.c $(CORE_A) $(call stamp,test)
	@mkdir -p $(@D)
	$(call say,TEST,$<)$(COMPILE_test) $(LDFLAGS) -MMD -MP -MF $@.d -o $@ $< $(CORE_A) $(COMMAND) $(LIBS)

$(filter $(basename $(AREA_CC:%=$(B)/%)),$(AREA_PROGS)): $(B)/%: %.cc $(CORE_A) $(call stamp,testcc)
	@mkdir -p $(@D)
	$(call say,TEST,$<)$(COMPILE_testcc) $(LDFLAGS) -MMD -MP -MF $@.d -o $@ $< $(CORE_A) $(COMMAND) $(LIBS)

# The strangers' jobs in C, linked with the simulated driver as they would be with the real one.
STRANGERS := $(patsubst %.c,$(B)/%,$(wildcard tests/strangers/native/*.c))
$(STRANGERS): $(B)/%: %.c $(B)/sim/libcuda.so $(B)/sim/libnccl.so.2 $(call stamp,test)
	@mkdir -p $(@D)
	$(call say,LD,$@)$(COMPILE_test) $(LDFLAGS) -MMD -MP -MF $@.d -o $@ $< -L$(B)/sim -Wl,--as-needed -lcuda -l:libnccl.so.2 -Wl,-rpath-link,$(B)/sim -lm

$(B)/obj/harness/%.o: tests/torture/sched/%.c $(B)/obj/harness/%.d $(call stamp,test)
	$(call compile,CC,harness)

# muldefs: the harness' own functions stand in for those of the archive.
$(B)/tests/torture/schedules: $(OBJ_harness) $(OBJ_sched) $(CORE_A) $(call stamp,test) $(call stamp,objects-sched) $(call stamp,objects-harness)
	@mkdir -p $(@D)
	$(call say,TEST,$@)$(COMPILE_test) $(LDFLAGS) -Wl,-z,muldefs -o $@ $(OBJ_harness) $(OBJ_sched) $(CORE_A) $(COMMAND) $(LIBS)

$(B)/tests/python/libreader.so: tests/python/reader/reader.c $(OBJ_job) $(call stamp,test) $(call stamp,objects-job)
	@mkdir -p $(@D)
	$(call say,TEST,$<)$(COMPILE_test) -fPIC -fvisibility=hidden -shared -Wl,-Bsymbolic $(LDFLAGS) -MMD -MP -MF $@.d -o $@ $< \
		$(filter-out %/string_functions.o,$(OBJ_job)) $(UNWIND_O) $(LIBS)

$(B)/tests/torture/ring: tests/torture/model/ring.c $(wildcard tests/torture/model/*.h) $(call stamp,test)
	@mkdir -p $(@D)
	$(call say,TEST,$@)$(COMPILE_test) $(LDFLAGS) -o $@ $<

$(filter $(AREA_C:%.c=$(B)/%.so),$(AREA_LIBS)) $(BENCH_LIBS): $(B)/%.so: %.c $(call stamp,test)
	@mkdir -p $(@D)
	$(call say,TEST,$<)$(COMPILE_test) -fPIC -shared $(LDFLAGS) -MMD -MP -MF $@.d -o $@ $< -ldl -lpthread

$(filter $(AREA_CC:%.cc=$(B)/%.so),$(AREA_LIBS)): $(B)/%.so: %.cc $(call stamp,testcc)
	@mkdir -p $(@D)
	$(call say,TEST,$<)$(COMPILE_testcc) -fPIC -shared $(LDFLAGS) -MMD -MP -MF $@.d -o $@ $< -ldl -lpthread

# Run variables shared by every target that starts tests.
RUN_ENV = TFH_BUILD=$(abspath $(B)) TFH_SRC=$(CURDIR) TFH_SAN=$(SAN)

#: make check            all tests (T=pattern for some of them)
check: tests
	$(Q)TFH_SAN=$(SAN) scripts/run-tests --build $(B) --jobs $(JOBS) --filter '$(T)' --python main --python clients \
		$(if $(T),,--again 3 --tool 'check-deps=scripts/check-deps $(B)' --tool 'check-output=scripts/check-output' \
		--tool 'check-waits=scripts/check-waits $(B)' \
		--tool 'check-exports=scripts/check-exports $(B)' --tool 'check-headers=scripts/check-headers' \
		--tool 'check-links=scripts/check-links' --tool 'gen-numbers=scripts/gen-numbers --check' --tool 'format=scripts/format --check') \
		$(UNIT) $(AREAS:%=tests/%)

#: make truth            predictions against measured fixes (SEED=n T=regex PAIRS=5 DOC=docs/truth.md; 20 minutes)
truth: all $(addprefix $(B)/tests/,truth/train truth/libtrain.so jobs/libslowread.so import/dump)
	$(Q)python=$$(scripts/python-env main) && $(RUN_ENV) TFH_PY="$$python" tests/truth/run --seed '$(SEED)' --filter '$(T)' \
		--pairs $(or $(PAIRS),5) $(if $(DOC),--doc $(DOC))

#: make evidence         jobs that wait for what no driver call shows: cause and line (T=regex)
evidence: all
	$(Q)python=$$(scripts/python-env main) && $(RUN_ENV) TFH_PY="$$python" tests/evidence/run --filter '$(T)'

#: make strangers        jobs written without knowledge of the rules (T=regex SPLIT=confirm|seen KEEP=dir)
strangers: all $(STRANGERS)
	$(Q)python=$$(scripts/python-env main) && $(RUN_ENV) TFH_PY="$$python" tests/strangers/run --filter '$(T)' --split '$(SPLIT)' --keep '$(KEEP)'

#: make families         jobs drawn at random, framework by defect (SEED=n N=85 T=regex SPLIT=confirm|develop KEEP=dir; 10 minutes)
families: all
	$(Q)python=$$(scripts/python-env main) && $(RUN_ENV) TFH_PY="$$python" tests/families/run --seed $(or $(SEED),1) --count $(or $(N),85) \
		--filter '$(T)' --split '$(SPLIT)' --keep '$(KEEP)'

#: make check-diff       pairs of equal runs and of runs with a planted change, compared (N=30 SEED=n; 5 minutes)
check-diff: all $(B)/tests/jobs/client_loop $(B)/tests/truth/train
	$(Q)folder=$$(mktemp -d) && { python3 tests/diff/pairs_of_runs.py '$(abspath $(B))' "$$folder" $(or $(N),30) $(or $(N),30) $(or $(SEED),1); \
		status=$$?; rm -rf "$$folder"; exit $$status; }

#: make truth-random     jobs drawn at random against measured twins (N=20 SEED=n)
truth-random: all $(addprefix $(B)/tests/,truth/train truth/libtrain.so)
	$(Q)$(RUN_ENV) tests/truth/random_jobs -n $(or $(N),20) $(if $(SEED),--seed '$(SEED)')

#: make truth-pipelines  tf.data pipelines drawn at random against measured twins (N=20 SEED=n)
truth-pipelines: all $(addprefix $(B)/tests/,truth/libtrain.so jobs/libslowread.so)
	$(Q)python=$$(scripts/python-env main) && $(RUN_ENV) TFH_PY="$$python" tests/truth/pipelines -n $(or $(N),20) \
		$(if $(SEED),--seed '$(SEED)')

#: make check-glibc      a job in the oldest Debian release still available (as root; 70 MB; TFH_ROOT=folder of another system)
check-glibc: tests $(OLD_PROGS)
	$(Q)scripts/run-tests -v --build $(B) --jobs 1 tests/glibc

#: make check-install    wheel, .deb, conda and Python package: auditwheel, lintian, fresh systems, Slurm (as root; 1 GB)
check-install: all $(OLD_PROGS)
	$(Q)scripts/run-tests -v --build $(B) --jobs 1 --filter '$(T)' tests/package tests/package/full

#: make check-upgrade    jobs of earlier versions, built from git's history and upgraded while they record (10 minutes)
check-upgrade: tests
	$(Q)scripts/run-tests -v --build $(B) --jobs 1 tests/golden/full

#: make check-aarch64    cross-built for AArch64, run by qemu (as root; 300 MB)
check-aarch64: all $(B)/tests/jobs/client_loop
	$(Q)tests/aarch64/check '$(B)' '$(T)'

#: make check-clients    real programs on the simulated driver, compared with its log call by call (T=NAME; 4 GB)
check-clients: tests
	$(Q)$(RUN_ENV) tests/clients/check '$(T)'

#: make check-wheels     the TensorFlow tests under other TensorFlow releases
WHEELS ?= tf215 tf218 tf220 tf221 tfgpu220
check-wheels: tests
	$(Q)status=0; for wheel in $(WHEELS); do echo "== $$wheel"; \
		TFH_FULL=1 TFH_WHEEL=$$wheel scripts/run-tests --build $(B) --jobs $(JOBS) --filter '$(T)' \
		--python $$wheel tests/tf tests/jobs || status=1; done; exit $$status

#: make check-frameworks real PyTorch jobs with and without the preload, known defects (T=NAME; 250 MB; TFH_TORCH=other pythons, by colons)
check-frameworks: tests
	$(Q)TFH_FULL=1 scripts/run-tests -v --build $(B) --jobs 1 --filter '$(T)' --timeout 3600 tests/frameworks

#: make scenarios        PyTorch and Keras jobs against their twins (T=regex SPLIT=confirm|seen PAIRS=3 KEEP=dir; 2 GB)
scenarios: all
	$(Q)python=$$(scripts/python-env main) && $(RUN_ENV) TFH_PY="$$python" tests/frameworks/scenarios --filter '$(T)' --split '$(SPLIT)' \
		--pairs $(or $(PAIRS),3) --keep '$(KEEP)'

#: make check-gpu        what only a real GPU can answer (bench/GPU.md); says SKIP elsewhere
check-gpu: tests
	$(Q)scripts/run-tests --build $(B) --jobs 1 --filter '$(T)' --timeout 1800 tests/gpu

#: make check-import     HolisticTraceAnalysis and XProf on the same real traces (750 MB)
check-import: tests
	$(Q)scripts/run-tests --build $(B) --jobs 1 --filter '$(T)' --python traces tests/import/full

#: make check-export     exported runs in HolisticTraceAnalysis, XProf, pprof and a collector (850 MB)
check-export: tests
	$(Q)scripts/run-tests --build $(B) --jobs 1 --filter '$(T)' --python traces tests/export/full

#: make check-fleet      questions about a million ranks, to Spark and DuckDB (RUNS=n, at least 6000; HOSTS=n of a run; 500 MB)
check-fleet: all $(B)/tests/jobs/client_loop
	$(Q)TFH_FLEET_FULL=1 TFH_FLEET_RUNS='$(RUNS)' TFH_FLEET_HOSTS='$(HOSTS)' scripts/run-tests -v --build $(B) --jobs 1 --filter '$(T)' --timeout 14400 tests/fleet tests/fleet/full

#: make check-libraries  lookups of cuBLAS, cuDNN, cuRAND, NCCL and nvJPEG (2 GB)
check-libraries: tests
	$(Q)scripts/run-tests --build $(B) --jobs 1 --filter '$(T)' --python libraries tests/hook/full

#: make check-invisible  CPython and training, the same with and without the preload (hours; 4 GB)
check-invisible: tests
	$(Q)scripts/run-tests --build $(B) --jobs 1 --filter '$(T)' --timeout 14400 tests/invisible

#: make demo             trace a training job on the simulated GPU (DEMO=quick: without TensorFlow)
demo: all
	$(Q)python=$$(scripts/python-env $(if $(filter quick,$(DEMO)),quick,main)) && \
		PATH="$$(dirname "$$python"):$$PATH" $(RUN_ENV) TFH_PY="$$python" $(B)/bin/tfhook demo $(DEMO)

#: make bench            bench/RESULTS.md: costs, beside other tools (an hour; T=short: a quarter; T=NAME: one, which is only printed)
bench: all $(BENCH) $(BENCH_LIBS) $(B)/tests/analyze/long_run $(B)/tests/ranks/digests $(B)/tests/jobs/client_loop
	$(Q)scripts/bootstrap bench || true
	$(Q)python=$$(scripts/python-env main) && $(RUN_ENV) TFH_PY="$$python" bench/run $(T)

#: make sensitivity      thresholds of the judge that change a verdict of the recordings in RUNS when halved or doubled (T=regex)
sensitivity:
	$(Q)$(MAKE) --no-print-directory O=$(O)-vary CFLAGS='$(CFLAGS) -DTFH_VARY -Wno-sign-compare' $(O)-vary/bin/tfhook
	$(Q)scripts/sensitivity $(O)-vary/bin/tfhook $(RUNS) '$(T)'

#: make ablate           the same for its rules for special cases, each switched off (T=regex; docs/ablation.md)
ablate:
	$(Q)$(MAKE) --no-print-directory O=$(O)-vary CFLAGS='$(CFLAGS) -DTFH_VARY -Wno-sign-compare' $(O)-vary/bin/tfhook
	$(Q)scripts/sensitivity --ablate $(O)-vary/bin/tfhook $(RUNS) '$(T)'

#: make fuzz             damaged files and hostile input (FUZZ_SECONDS=60 a target; docs/fuzzing.md)
# Fuzzers need clang's libFuzzer. Each gets FUZZ_SECONDS of processor time, in turns (tests/fuzz/turns).
# FUZZ_SAN= explores faster, without a sanitizer; FUZZ_ONLY= names targets; FUZZ_COVER=parsers counts coverage of tests/fuzz/parsers
# alone, and has one run in FUZZ_EVERY judged.
FUZZ_SECONDS ?= 60
FUZZ_TURN ?= 300
FUZZ_SAN ?= address
FUZZ_ONLY ?=
FUZZ_COVER ?=
FUZZ_EVERY ?= $(if $(FUZZ_COVER),16,1)
FUZZ_CFLAGS := -O2 -g -fsanitize=fuzzer-no-link $(if $(FUZZ_COVER),-fsanitize-coverage-allowlist=tests/fuzz/$(FUZZ_COVER))
fuzz:
	$(Q)scripts/bootstrap fuzz
	$(Q)FUZZ_EVERY=$(FUZZ_EVERY) $(MAKE) --no-print-directory CC=clang SAN=$(FUZZ_SAN) O=$(O)-fuzz$(FUZZ_COVER:%=-%) \
		CFLAGS='$(FUZZ_CFLAGS)' fuzz-run
fuzz-run: $(FUZZ)
	$(Q)tests/fuzz/turns $(B) $(FUZZ_SECONDS) $(FUZZ_TURN) $(FUZZ_ONLY)
# What the targets do themselves, mutating and checking, is no coverage to look for.
FUZZ_C := -fsanitize=fuzzer -fno-sanitize-coverage=inline-8bit-counters,pc-table,trace-cmp,indirect-calls,stack-depth
$(FUZZ): $(B)/%: %.c $(FUZZ_PARTS) tests/fuzz/fuzz.h $(CORE_A) $(call stamp,test)
	@mkdir -p $(@D)
	$(call say,FUZZ,$<)$(COMPILE_test) $(FUZZ_C) $(LDFLAGS) -o $@ $< $(FUZZ_PARTS) $(CORE_A) $(COMMAND) $(LIBS)
$(REPLAY): $(B)/tests/fuzz/replay_%: tests/fuzz/fuzz_%.c tests/fuzz/replay.c $(FUZZ_PARTS) tests/fuzz/fuzz.h $(CORE_A) $(call stamp,test)
	@mkdir -p $(@D)
	$(call say,TEST,$<)$(COMPILE_test) $(LDFLAGS) -o $@ $< tests/fuzz/replay.c $(FUZZ_PARTS) $(CORE_A) $(COMMAND) $(LIBS)

#: make analyze          cppcheck, clang's analyzer and gcc -fanalyzer over lib/ (10 minutes; known findings: scripts/static-known)
analyze: compile_commands.json
	$(Q)scripts/bootstrap analyze
	$(Q)scripts/check-static --jobs $(JOBS) --cache $(B)/analyze

#: make torture          every way a job can end, jobs beside other tools (docs/torture.md; T=regex SEED=n SCHEDULES_N=n; half an hour)
SCHEDULES_N ?= 1000000
torture: tests
	$(Q)scripts/bootstrap torture
	$(Q)$(RUN_ENV) tests/torture/run --seed '$(or $(SEED),0)' --schedules $(SCHEDULES_N) --filter '$(T)'

#: make soak             kills and long runs (T=regex SECONDS=n; hours)
soak: tests
	$(Q)scripts/run-tests --build $(B) --jobs 1 --filter '$(T)' --timeout $$((7200 + $(or $(SECONDS),0))) --python main tests/soak

#: make deps             install what the build needs (as root, or with passwordless sudo); compiles nothing
deps:
	$(Q)scripts/bootstrap

#: make python-env       NAME=main|quick|clients|libraries|tf215|tf218|tf220|tf221|tfgpu220
python-env:
	$(Q)scripts/python-env $(or $(NAME),main)

#: make format           clang-format; make compile_commands.json for editors
format:
	$(Q)scripts/format

compile_commands.json:
	$(Q)scripts/gen-compile-commands \
		'$(COMPILE_core)' $(SRC_core) $(SRC_main) -- \
		'$(COMPILE_job)' $(call sources,hook) $(wildcard lib/audit/*.c lib/glibc/*.c) -- \
		'$(COMPILE_sim)' $(call sources,sim/gpu) $(wildcard lib/sim/gpu/variants/*.c) $(SRC_cupti) $(SRC_nccl) $(SRC_nvml) -- \
		'$(COMPILE_test)' $(UNIT_C) $(AREA_C) >$@

# --- install -----------------------------------------------------------------------------------------------------
# "source=destination"; uninstall removes exactly these.
DATA := $(PREFIX)/share
INSTALL_LIST = \
	$(TFHOOK)=$(PREFIX)/bin/tfhook=755 \
	$(foreach f,$(HOOK_SO) $(NOEXPORT_SO) $(AUDIT_SO),$f=$(LIBDIR)/tfhook/$(notdir $f)=755) \
	$(foreach f,$(filter-out %.so $(B)/sim/old/% $(B)/sim/future/%,$(SIMULATORS)),$f=$(LIBDIR)/tfhook/sim/$(notdir $f)=755) \
	$(foreach f,$(filter %.a,$(TFT)),$f=$(LIBDIR)/libtft.a=644) \
	$(foreach f,$(filter %.so,$(TFT)),$f=$(LIBDIR)/libtft.so.0=755) \
	$(B)/lib/libtft.pc=$(LIBDIR)/pkgconfig/libtft.pc=644 \
	$(foreach f,$(MAN),$f=$(DATA)/man/man$(subst .,,$(suffix $f))/$(notdir $f)=644) \
	$(foreach f,$(wildcard include/tfhook/*.h),$f=$(PREFIX)/include/tfhook/$(notdir $f)=644) \
	$(foreach f,$(wildcard scripts/demo/*.*),$f=$(DATA)/tfhook/$(f:scripts/%=%)=644) \
	$(foreach f,$(wildcard $(addprefix lib/python/tfhook/,*.py py.typed page.css sql/*.sql)),$f=$(DATA)/tfhook/$(f:lib/%=%)=644) \
	$(foreach f,$(wildcard README.md LICENSE CHANGELOG.md docs/*.md docs/*.json docs/metrics/* lib/format/FORMAT.md) $(if $(LIBUNWIND)$(filter uninstall,$(GOALS)),$(UNWIND)/LICENSE.libunwind),$f=$(DATA)/doc/tfhook/$(notdir $f)=644)
VERSION = $(shell sed -n 's/.*TFHOOK_VERSION "\(.*\)"/\1/p' include/tfhook/version.h)
field = $(word $2,$(subst =, ,$1))
#: make install          PREFIX=/usr/local DESTDIR= ; uninstall removes the same files
install: all
	$(Q)printf '%s\n' 'prefix=$(PREFIX)' 'libdir=$(LIBDIR)' 'includedir=$(PREFIX)/include' '' 'Name: libtft' \
		'Description: reads the recordings of tfhook' 'Version: $(VERSION)' 'Cflags: -I$${includedir}' 'Libs: -L$${libdir} -ltft' \
		'Libs.private: -lzstd -ldl -lpthread -lm' >$(B)/lib/libtft.pc
	$(Q)set -e; for entry in $(INSTALL_LIST); do IFS='='; set -- $$entry; unset IFS; \
		install -D -m "$$3" "$$1" "$(DESTDIR)$$2"; done
	$(Q)for link in $(LIB_LINKS:$(B)/lib/%=%); do to="$(DESTDIR)$(LIBDIR)/tfhook/$$link"; \
		mkdir -p "$${to%/*}"; cp -Pf "$(B)/lib/$$link" "$$to"; done
	$(Q)ln -sf libtft.so.0 "$(DESTDIR)$(LIBDIR)/libtft.so"
	$(if $(SIMULATORS),$(Q)ln -sf libcuda.so.1 "$(DESTDIR)$(LIBDIR)/tfhook/sim/libcuda.so"; \
		ln -sf libcupti.so.13 "$(DESTDIR)$(LIBDIR)/tfhook/sim/libcupti.so")

uninstall:
	$(Q)rm -f $(foreach e,$(INSTALL_LIST),"$(DESTDIR)$(call field,$e,2)") \
		"$(DESTDIR)$(LIBDIR)/libtft.so" "$(DESTDIR)$(LIBDIR)/tfhook/sim/libcuda.so" \
		"$(DESTDIR)$(LIBDIR)/tfhook/sim/libcupti.so" \
		$(foreach l,$(LIB_LINKS:$(B)/lib/%=%),"$(DESTDIR)$(LIBDIR)/tfhook/$l")
	$(Q)for d in $(addprefix $(DATA)/man/,man1 man5 man7) $(LIBDIR)/pkgconfig $(LIBDIR)/tfhook/sim $(addprefix $(LIBDIR)/tfhook/,$(filter lib/%,$(LIB_FOLDERS) $(EMPTY_FOLDERS)) $(filter-out lib/%,$(LIB_FOLDERS) $(EMPTY_FOLDERS))) $(LIBDIR)/tfhook $(PREFIX)/include/tfhook $(DATA)/doc/tfhook \
		$(DATA)/tfhook/demo $(DATA)/tfhook/python/tfhook/sql $(DATA)/tfhook/python/tfhook $(DATA)/tfhook/python $(DATA)/tfhook; do \
		rmdir "$(DESTDIR)$$d" 2>/dev/null || true; done

# What pip installs: the same files, below an environment's folder (scripts/wheel).
DIST ?= $(O)/dist
#: make wheel            build/dist/*.whl, for pip install
wheel: all
	$(Q)stage=$$(mktemp -d) && { $(MAKE) --no-print-directory -o all install DESTDIR="$$stage" PREFIX= LIBDIR=/lib && \
		scripts/wheel "$$stage" $(DIST); status=$$?; rm -rf "$$stage"; exit $$status; }

#: make deb              build/dist/*.deb, for Debian and Ubuntu
deb: all
	$(Q)stage=$$(mktemp -d) && { $(MAKE) --no-print-directory -o all install DESTDIR="$$stage" PREFIX=/usr LIBDIR=/usr/lib/$(ARCH)-linux-gnu && \
		scripts/deb "$$stage" $(DIST); status=$$?; rm -rf "$$stage"; exit $$status; }

#: make conda            build/dist/*.conda, for conda, mamba and pixi
conda: all
	$(Q)python=$$(scripts/python-env conda) && stage=$$(mktemp -d) && { \
		$(MAKE) --no-print-directory -o all install DESTDIR="$$stage" PREFIX= LIBDIR=/lib && \
		"$$python" scripts/conda "$$stage" $(DIST) $(ARCH); status=$$?; rm -rf "$$stage"; exit $$status; }

# --- the rest ----------------------------------------------------------------------------------------------------
#: make clean distclean  remove what was built; and the downloads
clean:
	$(Q)rm -rf $(foreach d,bin dist glibc lib man share sim obj flags page tests bench cuda.mk,$(B)/$d)

# The downloads too.
distclean:
	$(Q)rm -rf build build-* compile_commands.json

#: Settings: CC=gcc|clang SAN=address|undefined|thread CUDA_GEN=13|12 V=1 SIM=no
help:
	@sed -n 's/^#: //p' Makefile

# What each object was made of. One that is missing has an empty rule, so that its object is made anew.
HEADERS := $(patsubst %.o,%.d,$(OBJ_job) $(OBJ_core) $(OBJ_main) $(OBJ_shared) $(OBJ_sim) $(OBJ_variants) $(OBJ_cupti) $(OBJ_generations) $(OBJ_nccl) $(OBJ_nvml) $(OBJ_audit) $(OBJ_standins) $(OBJ_sched) $(OBJ_harness))
$(HEADERS):
-include $(wildcard $(HEADERS))
-include $(wildcard $(addsuffix .d,$(UNIT) $(AREA_PROGS) $(AREA_LIBS) $(filter %/ring,$(SCHEDULES)) $(BENCH) $(BENCH_LIBS) $(OLD_PROGS) $(STRANGERS)))
