/* Mangled kernel names of real libraries are demangled as by c++filt -p. Names that would expand to
 * gigabytes, are truncated or are invalid are rejected at once, within a megabyte of memory,
 * whatever their bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "model/symbols/demangle.h"
#include "model/symbols/kernel_name.h"

static const struct {
	const char *mangled, *plain;
} real[] = {
	{"_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEENS_"
	 "6detail5ArrayIPcLi1EEEEEviT0_T1_",
	 "at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, "
	 "at::detail::Array<char*, 1> >"},
	{"_ZN7cutlass7Kernel2I66cutlass_80_tensorop_f16_s16816gemm_relu_f16_256x128_32x3_nn_"
	 "align8EEvNT_6ParamsE",
	 "cutlass::Kernel2<cutlass_80_tensorop_f16_s16816gemm_relu_f16_256x128_32x3_nn_align8>"},
	{"_ZN5Eigen8internal15EigenMetaKernelINS_15TensorEvaluatorIKNS_14TensorAssignOpINS_"
	 "9TensorMapINS_6TensorIfLi1ELi1EiEELi16ENS_11MakePointerEEEKS7_EENS_9GpuDeviceEEEiEEvT_"
	 "T0_",
	 "Eigen::internal::EigenMetaKernel<Eigen::TensorEvaluator<Eigen::TensorAssignOp<Eigen::"
	 "TensorMap<Eigen::Tensor<float, 1, 1, int>, 16, Eigen::MakePointer>, Eigen::MakePointer "
	 "const> const, Eigen::GpuDevice>, int>"},
	{"_ZN6thrust8cuda_cub4core13_kernel_agentINS0_14__parallel_for16ParallelForAgentINS0_20__"
	 "uninitialized_fill7functorINS_10device_ptrIfEEfEEmEES9_mEEvT0_T1_",
	 "thrust::cuda_cub::core::_kernel_agent<thrust::cuda_cub::__parallel_for::ParallelForAgent<"
	 "thrust::cuda_cub::__uninitialized_fill::functor<thrust::device_ptr<float>, float>, "
	 "unsigned long>, "
	 "thrust::cuda_cub::__uninitialized_fill::functor<thrust::device_ptr<float>, float>, "
	 "unsigned long>"},
	{"_ZN2at6native18elementwise_kernelILi128ELi2EZNS0_22gpu_kernel_impl_nocastIZZZNS0_"
	 "23direct_copy_kernel_cudaERNS_18TensorIteratorBaseEENKUlvE0_clEvENKUlvE4_clEvEUlfE_EEvS4_"
	 "RKT_EUliE_EEviT1_",
	 "at::native::elementwise_kernel<128, 2, "
	 "at::native::gpu_kernel_impl_nocast<at::native::direct_copy_kernel_cuda(at::"
	 "TensorIteratorBase&)::{lambda()#2}::operator()() const::{lambda()#6}::operator()() "
	 "const::{lambda(float)#1}>(at::TensorIteratorBase&, "
	 "at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#2}::operator()() "
	 "const::{lambda()#6}::operator()() const::{lambda(float)#1} const&)::{lambda(int)#1}>"},
	{"_ZN3cub17CUB_200200_700_NS18DeviceReduceKernelINS0_"
	 "18DeviceReducePolicyIfjN6thrust4plusIfEEE9Policy600EPfS8_jS5_EEvT0_PT1_T2_NS0_"
	 "13GridEvenShareISC_EET3_",
	 "cub::CUB_200200_700_NS::DeviceReduceKernel<cub::CUB_200200_700_NS::DeviceReducePolicy<"
	 "float, unsigned int, thrust::plus<float> >::Policy600, float*, float*, unsigned int, "
	 "thrust::plus<float> >"},
	{"_ZN8cudapoly4impl4loopIPFvPiELi3EEEvT_", "cudapoly::impl::loop<void (*)(int*), 3>"},
	{"_ZN5flash16flash_fwd_kernelI23Flash_fwd_kernel_"
	 "traitsILi64ELi128ELi128ELi4ELb0ELb0EN7cutlass6half_tE19Flash_kernel_"
	 "traitsILi64ELi128ELi128ELi4ES3_EELb0ELb1ELb0ELb0ELb1ELb0EEEv16Flash_fwd_params",
	 "flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4, false, false, "
	 "cutlass::half_t, Flash_kernel_traits<64, 128, 128, 4, cutlass::half_t> >, false, true, "
	 "false, false, true, false>"},
	{"_Z3addPfS_i", "add"},
	{"_ZN12_GLOBAL__N_16kernelIKcEEvPT_", "(anonymous namespace)::kernel<char const>"},
	{"_ZNK3FooIJidEEclERKS0_", "Foo<int, double>::operator()"},
	{"_ZN1A1BC2Ev", "A::B::B"},
	{"_ZN1aIA3_iFvRKS0_EM1BiLb1ELc97ELin1ELNS_1eE2EE1fEv",
	 "a<int [3], void (int const (&) [3]), int B::*, true, (char)97, -1, (a::e)2>::f"},
};

static void as_the_library(void **state)
{
	char out[4096];

	(void)state;
	for (size_t i = 0; i < sizeof(real) / sizeof(real[0]); i++) {
		assert_true(tfh_demangle(real[i].mangled, out, sizeof(out)));
		assert_string_equal(out, real[i].plain);
	}
	assert_true(tfh_demangle("_Z3addPfS_i", out, 4));
	assert_false(tfh_demangle("_Z3addPfS_i", out, 3));
}

static void refused(void **state)
{
	static const char *const bad[] = {"",	      "_Z",	      "_Z1",
					  "_Z9add",   "_ZN3add",      "_Z1fIT_Evv",
					  "_ZNS_1fE", "_Z1fIXsrEEvv", "_Z99999999999999999999a",
					  "_ZTV1A",   "add",	      "_Z1fIL",
					  "_Z1fIA",   "_ZC1",	      "_ZZ",
					  "_ZNSt"};
	char out[256];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(tfh_demangle(bad[i], out, sizeof(out)));
}

/* "S_I S1_ S1_ E": each template argument is twice the one before. */
static void bombs(void **state)
{
	static const char digit[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	char text[8192], out[TFH_KERNEL_NAME], plain[8192];

	(void)state;
	for (size_t levels = 3; levels < 35; levels++) {
		for (int args = 0; args < 2; args++) {
			size_t n = (size_t)snprintf(text, sizeof(text), "_Z1f%s1pIiiE",
						    args ? "I" : "");
			for (size_t i = 0; i < levels; i++)
				n += (size_t)snprintf(text + n, sizeof(text) - n, "S_IS%c_S%c_E",
						      digit[i + args], digit[i + args]);
			snprintf(text + n, sizeof(text) - n, "%s", args ? "Ev" : "");
			bool read = tfh_demangle(text, plain, sizeof(plain));
			assert_true(read || levels > 6);
			tfh_kernel_short(out, text, 80);
			assert_true(strlen(out) <= 80);
		}
	}
	/* Deep ones. */
	static const char *const deep[] = {"P", "N", "Z",      "I1a", "K", "Ul",
					   "M", "F", "XadL_Z", "Dp",  "A_"};
	for (size_t i = 0; i < sizeof(deep) / sizeof(deep[0]); i++) {
		size_t n = (size_t)snprintf(text, sizeof(text), "_Z1fI");
		while (n + 10 < sizeof(text))
			n += (size_t)snprintf(text + n, sizeof(text) - n, "%s", deep[i]);
		assert_false(tfh_demangle(text, plain, sizeof(plain)));
	}
}

/* Real names with bytes exchanged, added and left out. */
static void broken(void **state)
{
	static const char letters[] = "NIEJXLTSPRKZUDABC_0123456789tlvifs";
	uint64_t seed = 88172645463325252u;
	char text[1024], out[8192];

	(void)state;
	for (int round = 0; round < 5000; round++) {
		snprintf(text, sizeof(text), "%s",
			 real[(size_t)round % (sizeof(real) / sizeof(real[0]))].mangled);
		for (int i = 0; i < 3; i++) {
			seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
			size_t len = strlen(text), at = 2 + (seed >> 20) % (len - 2);
			if (seed >> 60 < 6 && len > 20)
				memmove(text + at, text + at + 1, len - at);
			else
				text[at] = letters[(seed >> 40) % (sizeof(letters) - 1)];
		}
		if (tfh_demangle(text, out, sizeof(out)))
			assert_true(strlen(out) < sizeof(out));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_the_library),
		cmocka_unit_test(refused),
		cmocka_unit_test(bombs),
		cmocka_unit_test(broken),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
