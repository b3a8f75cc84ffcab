/*
 * The PTX interpreter computes what the kernels say: arithmetic of all widths, conversions,
 * divergent branches and loops, predicated memory, shared memory with barriers, vectors. What it
 * does not know it refuses, and a wild access is an error of the context.
 */
#include "sim_test.h"

#include <math.h>

#define HEAD ".version 7.5\n.target sm_80\n.address_size 64\n"
#define INDEX                                                                                      \
	"mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ntid.x; mov.u32 %r2, %tid.x;\n"                      \
	"mad.lo.u32 %r3, %r0, %r1, %r2;\n"                                                         \
	"ld.param.u64 %rd0, [out]; mul.wide.u32 %rd1, %r3, 4; add.u64 %rd0, %rd0, %rd1;\n"
#define REGS                                                                                       \
	".reg .u32 %r<20>; .reg .u64 %rd<8>; .reg .pred %p<4>; .reg .f32 %f<8>; .reg .s16 "        \
	"%h<4>;\n"

static const char ptx[] = HEAD
	/* Collatz steps of the thread's number: loops of different length and a branch in each
	   turn. */
	".visible .entry collatz(.param .u64 out)\n{\n" REGS INDEX
	"add.u32 %r4, %r3, 1; mov.u32 %r5, 0;\n"
	"LOOP: setp.eq.u32 %p0, %r4, 1; @%p0 bra DONE;\n"
	"and.b32 %r6, %r4, 1; setp.ne.u32 %p1, %r6, 0; @%p1 bra ODD;\n"
	"shr.u32 %r4, %r4, 1; bra NEXT;\n"
	"ODD: mad.lo.u32 %r4, %r4, 3, 1;\n"
	"NEXT: add.u32 %r5, %r5, 1; bra LOOP;\n"
	"DONE: st.global.u32 [%rd0], %r5; ret;\n}\n"
	/* Sum over the block by a tree in shared memory; every third block leaves early. */
	".visible .entry reduce(.param .u64 out)\n{\n" REGS
	".shared .align 16 .b8 part[256];\n" INDEX
	"rem.u32 %r9, %r0, 3; setp.eq.u32 %p3, %r9, 2; @%p3 ret;\n"
	"mov.u64 %rd2, part[0]; mul.wide.u32 %rd3, %r2, 4; add.u64 %rd2, %rd2, %rd3;\n"
	"st.shared.u32 [%rd2+0], %r3; mov.u32 %r4, 32;\n"
	"AGAIN: bar.sync 0; setp.ge.u32 %p0, %r2, %r4; @%p0 bra SKIP;\n"
	"mul.wide.u32 %rd4, %r4, 4; add.u64 %rd4, %rd2, %rd4;\n"
	"ld.shared.u32 %r5, [%rd4]; ld.shared.u32 %r6, [%rd2]; add.u32 %r5, %r5, %r6; "
	"st.shared.u32 [%rd2], %r5;\n"
	"SKIP: shr.u32 %r4, %r4, 1; setp.ne.u32 %p1, %r4, 0; @%p1 bra AGAIN;\n"
	"bar.sync 0; ld.shared.u32 %r7, [part+0]; st.global.u32 [%rd0], %r7; ret;\n}\n"
	/* Floats: fma, conversions, comparison with not-a-number, predicated load with a gate. */
	".visible .entry floats(.param .u64 out, .param .f32 a)\n{\n" REGS INDEX
	"ld.param.f32 %f0, [a]; cvt.rn.f32.u32 %f1, %r3; fma.rn.f32 %f2, %f1, %f0, 0f3f800000;\n"
	"sub.f32 %f3, %f1, %f1; div.rn.f32 %f4, %f3, %f3; setp.lt.f32 %p0, %f4, %f2; setp.ltu.f32 "
	"%p1, %f4, %f2;\n"
	"mov.f32 %f5, 0f00000000; @%p0 mov.f32 %f5, 0f42c80000; @%p1 add.f32 %f2, %f2, "
	"0f3f800000;\n"
	"neg.f32 %f6, %f2; cvt.rzi.s32.f32 %r4, %f6; cvt.rzi.u32.f32 %r5, %f6; add.s32 %r4, %r4, "
	"%r5;\n"
	"cvt.rn.f32.s32 %f6, %r4; add.f32 %f2, %f5, %f6; st.global.f32 [%rd0+0], %f2; ret;\n}\n"
	/* Narrow integers, vectors, signs. */
	".visible .entry narrow(.param .u64 out)\n{\n" REGS INDEX
	"mov.u32 %r4, 200; cvt.u8.u32 %h0, %r4; cvt.s8.u32 %h1, %r4; cvt.s32.s8 %r5, %h1; "
	"cvt.u32.u8 %r6, %h0;\n"
	"div.s32 %r7, -7, 2; rem.s32 %r8, -7, 2; shr.s32 %r9, -16, 2; mul.hi.u32 %r10, 4294967295, "
	"16;\n"
	"ld.param.u64 %rd2, [out]; st.global.v4.u32 [%rd2+0], {%r5, %r6, %r7, %r8}; "
	"st.global.v2.u32 [%rd2+16], {%r9, %r10};\n"
	"ld.global.s8 %h2, [%rd2+0]; cvt.s32.s16 %r11, %h2; min.s32 %r12, %r11, 3; abs.s32 %r12, "
	"%r12; st.global.u32 [%rd2+24], %r12;\n"
	"max.u32 %r13, %r11, 3; selp.u32 %r14, 11, 22, %p0; st.global.u32 [%rd2+28], %r13; "
	"ret;\n}\n"
	".visible .entry unknown(.param .u64 out)\n{\n" REGS INDEX
	"vote.sync.any.pred %p0, %p1, 4294967295; st.global.u32 [%rd0], 77; ret;\n}\n"
	".visible .entry wild(.param .u64 out)\n{\n" REGS
	"mov.u64 %rd0, 64; st.global.u32 [%rd0], 1; ret;\n}\n";

enum { THREADS = 64, BLOCKS = 7, N = THREADS * BLOCKS };

static CUmodule module;
static CUdeviceptr out;
static uint32_t back[N];

static void run(const char *name, unsigned blocks, unsigned threads, void *second)
{
	CUfunction f = NULL;
	void *params[] = {&out, second};
	OK(cuModuleGetFunction, (CUfunction *, CUmodule, const char *), &f, module, name);
	OK(cuMemsetD32_v2, (CUdeviceptr, uint32_t, size_t), out, 0xdeadbeef, N);
	CHECK(launch(f, blocks, threads, NULL, params) == 0);
	OK(cuMemcpyDtoH_v2, (void *, CUdeviceptr, size_t), back, out, sizeof(back));
}

static uint32_t collatz(uint32_t x)
{
	uint32_t n = 0;
	for (; x != 1; n++)
		x = x & 1 ? 3 * x + 1 : x / 2;
	return n;
}

int main(void)
{
	setenv("SIM_INTERP", "1", 1);
	open_context();
	OK(cuModuleLoadData, (CUmodule *, const void *), &module, ptx);
	out = device_memory(sizeof(back));

	static const unsigned shapes[][2] = {{BLOCKS, THREADS}, {N, 1}, {N / 14, 14}, {1, N}};
	for (size_t k = 0; k < 4; k++) {
		run("collatz", shapes[k][0], shapes[k][1], NULL);
		for (uint32_t i = 0; i < N; i++)
			CHECK(back[i] == collatz(i + 1));
	}
	run("reduce", BLOCKS, THREADS, NULL);
	for (uint32_t i = 0; i < N; i++) {
		uint32_t first = i / THREADS * THREADS;
		CHECK(back[i] == (i / THREADS % 3 == 2
					  ? 0xdeadbeef
					  : THREADS * first + THREADS * (THREADS - 1) / 2));
	}
	float a = 0.1F;
	run("floats", BLOCKS, THREADS, &a);
	for (uint32_t i = 0; i < N; i++) {
		float v, x = fmaf((float)i, a, 1.0F) + 1.0F;
		memcpy(&v, &back[i], 4);
		CHECK(v == (float)(int)-x);
	}
	run("narrow", 1, 1, NULL);
	static const uint32_t expected[] = {(uint32_t)-56, 200, (uint32_t)-3, (uint32_t)-1,
					    (uint32_t)-4,  15,	56,	      (uint32_t)-56};
	CHECK(!memcmp(back, expected, sizeof(expected)));
	run("unknown", 1, 1, NULL);
	CHECK(back[0] == 0xdeadbeef);

	CUfunction f = NULL;
	void *params[] = {&out};
	OK(cuModuleGetFunction, (CUfunction *, CUmodule, const char *), &f, module, "wild");
	CHECK(launch(f, 1, 1, NULL, params) == 0);
	CHECK(CU(cuCtxSynchronize, (void), ) == CUDA_ERROR_ILLEGAL_ADDRESS);
	CHECK(launch(f, 1, 1, NULL, params) == CUDA_ERROR_ILLEGAL_ADDRESS);
	return failures != 0;
}
