/* A kernel's short name fits, keeps what identifies it (function, functor, tile), and two kernels
 * of a table never look the same. A kernel that waits for other devices is recognised by its
 * library or by the collective in its name, in any spelling. No text causes harm. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "model/symbols/kernel_name.h"

#define ADD                                                                                        \
	"void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>, "        \
	"at::detail::Array<char*, 3> >(int, at::native::AddFunctor<float>, "                       \
	"at::detail::Array<char*, 3>)"
#define DIRECT                                                                                     \
	"void at::native::elementwise_kernel<128, 2, at::native::gpu_kernel_impl<at::native::"     \
	"(anonymous namespace)::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#2}::"  \
	"operator()() const::{lambda(float)#1}>(at::TensorIteratorBase&)::{lambda(int)#1}>(int, "  \
	"at::native::gpu_kernel_impl<int>(at::TensorIteratorBase&)::{lambda(int)#1})"

static void what_tells_stays(void **state)
{
	(void)state;
	static const struct {
		const char *name, *width_42, *width_80;
	} rows[] = {
		{"ampere_sgemm_128x128_tn", "ampere_sgemm_128x128_tn", "ampere_sgemm_128x128_tn"},
		{"Memset (Device)", "Memset (Device)", "Memset (Device)"},
		{"ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*, unsigned long, ncclWork*)",
		 "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
		 "ncclDevKernel_AllReduce_Sum_f32_RING_LL"},
		{ADD, "vectorized_elementwise_kernel<AddFunctor>",
		 "at::native::vectorized_elementwise_kernel<4,AddFunctor<float>,Array<char*,3>>"},
		{DIRECT, "element..e_kernel<direct_copy_kernel_cuda>",
		 "at::native::elementwise_kernel<direct_copy_kernel_cuda>"},
		{"void cudnn::bn_bw_1C11_kernel_new<float, float, float2, 512, true, 1>(float)",
		 "cudnn::bn_bw_1C11_kernel_new<...>",
		 "cudnn::bn_bw_1C11_kernel_new<float,float,float2,512,true,1>"},
		{"void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_64x64_32x4_nn_align1>("
		 "cutlass_80_tensorop_s1688gemm_64x64_32x4_nn_align1::Params)",
		 "cutlass_80_tensorop_..64x64_32x4_nn_align1",
		 "cutlass::Kernel<cutlass_80_tensorop_s1688gemm_64x64_32x4_nn_align1>"},
		{"void f<int (*)(long), 3>(int)", "f<int(*)(long),3>", "f<int(*)(long),3>"},
		{"std::vector<int> ns::g<unsigned long>(int) const", "ns::g<unsigned long>",
		 "ns::g<unsigned long>"},
		{"cudapy::stranger::Numba::__init__::_3clocals_3e::bwd[abi:v1](int)",
		 "stranger::Numba::__init__::bwd", "stranger::Numba::__init__::bwd"},
		{"__main__::fwd[abi:v1][abi:cw51cXTLSUwv1sCUt9_3d](Array<float, 1>, int)",
		 "__main__::fwd", "__main__::fwd"},
	};
	char out[TFH_KERNEL_NAME];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_string_equal(tfh_kernel_short(out, rows[i].name, 42), rows[i].width_42);
		assert_string_equal(tfh_kernel_short(out, rows[i].name, 80), rows[i].width_80);
	}
}

static void alike_are_told_apart(void **state)
{
	(void)state;
	static const char *const names[] = {
		"void implicit_convolve_sgemm<float, float, 1024, 6, 7, 3, 3>(int, int)",
		"void implicit_convolve_sgemm<float, float, 128, 6, 7, 3, 3>(int, int)",
		"void implicit_convolve_sgemm<float, float, 512, 6, 8, 3, 3>(int, int)",
		"void a::scale_the_whole_tensor_by<float, Mul>(float*)",
		"void b::scale_the_whole_tensor_by<float, Mul>(float*)",
		"spin(int)",
		"spin(long)",
		ADD,
	};
	enum { N = sizeof(names) / sizeof(names[0]) };
	char out[N][TFH_KERNEL_NAME];

	for (size_t width = 16; width < 80; width += 7) {
		tfh_kernel_shorts(out, names, N, width);
		for (size_t i = 0; i < N; i++) {
			assert_true(strlen(out[i]) <= width);
			for (size_t k = 0; k < i; k++)
				assert_string_not_equal(out[i], out[k]);
		}
	}
	tfh_kernel_shorts(out, names, N, 33);
	assert_string_equal(out[0], "implicit_convolve_sgemm<..1024>");
	assert_string_equal(out[1], "implicit_convolve_sgemm<..128>");
	assert_string_equal(out[2], "implicit_convolve_sgemm<..512..8>");
}

static void collectives_are_known(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		bool communicates;
	} rows[] = {
		{"ncclDevKernel_Broadcast_RING_LL(ncclDevKernelArgsStorage<4096ul>)", true},
		{"void vllm::cross_device_reduce_1stage<half, 2>(vllm::RankData*)", true},
		{"_ZN3c10L25one_shot_all_reduce_kernelIfLi8EEEvPT_", true},
		{"void tensorrt_llm::kernels::oneShotAllReduceKernel<half>()", true},
		{"void deep_ep::intranode::dispatch<8, 768>(int4*)", true},
		{"ReduceScatter_f32", true},
		{"void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float>>()", false},
		{"rendezvous", false},
		{"triton_poi_fused_add_all_gather_into_tensor_wait_tensor_3", false},
		{"triton_all_reduce_kernel", true},
		{"my_nccl_named_loader", false},
		{"", false},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (tfh_kernel_communicates(rows[i].name) != rows[i].communicates)
			fail_msg("%s: %d", rows[i].name, !rows[i].communicates);
}

static void any_text(void **state)
{
	(void)state;
	static const char parts[][12] = {"<",	  ">",	   "(",	     ")",  "::", "{",	     "}",
					 "void ", "f",	   "lambda", ",",  " ",	 "operator", "->",
					 "_Z",	  "Array", "const",  "\n", "*",	 "\377",     "12"};
	char out[TFH_KERNEL_NAME], text[400];
	uint64_t seed = 7;

	for (int round = 0; round < 20000; round++) {
		size_t n = 0;
		text[0] = '\0';
		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		for (uint64_t k = seed >> 59; k; k--) {
			seed = seed * 6364136223846793005ull + 1442695040888963407ull;
			const char *part = parts[(seed >> 40) % (sizeof(parts) / sizeof(parts[0]))];
			n += (size_t)snprintf(text + n, sizeof(text) - n, "%s", part);
		}
		size_t width = 16 + (seed >> 50) % 60;
		assert_true(strlen(tfh_kernel_short(out, text, width)) <= width);
	}
	static char longest[100000];
	memset(longest, '<', sizeof(longest) - 1);
	assert_true(strlen(tfh_kernel_short(out, longest, 40)) <= 40);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_tells_stays),
		cmocka_unit_test(alike_are_told_apart),
		cmocka_unit_test(collectives_are_known),
		cmocka_unit_test(any_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
