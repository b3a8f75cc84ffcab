/* A kernel's name tells what it does, mangled or not, whatever its parameters: matrix products and
 * convolutions with and without tensor cores, in names of cuBLAS, cuDNN, CUTLASS, PyTorch,
 * TorchInductor, TensorFlow, XLA and others. A name that does not tell it has no family. No text
 * causes harm. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "model/symbols/kernel_family.h"

#define ELEMENTWISE(functor)                                                                       \
	"void at::native::vectorized_elementwise_kernel<4, " functor                               \
	", at::detail::Array<char*, 3> >(int, at::detail::Array<char*, 3>)"
#define EIGEN(op)                                                                                  \
	"void Eigen::internal::EigenMetaKernel<Eigen::TensorEvaluator<Eigen::TensorAssignOp<"      \
	"Eigen::TensorMap<Eigen::Tensor<Eigen::half, 1, 1, long>, 16>, " op                        \
	"> const, Eigen::GpuDevice>, long>(Eigen::TensorEvaluator<int>, long)"

static const struct {
	enum tfh_kernel_family family;
	const char *name;
} rows[] = {
	/* cuBLAS */
	{TFH_FAMILY_MATMUL_PLAIN, "ampere_sgemm_128x64_tn"},
	{TFH_FAMILY_MATMUL_PLAIN, "volta_fp16_sgemm_fp16_128x64_nn"},
	{TFH_FAMILY_MATMUL_PLAIN,
	 "void gemmSN_TN_kernel<float, 128, 16, 2, 4, 4, 4, true>(cublasGemmSmallNParams<float>)"},
	{TFH_FAMILY_MATMUL_PLAIN,
	 "void gemv2T_kernel_val<int, int, float, float, float, float, 128>(cublasGemvParamsEx<int>)"},
	{TFH_FAMILY_MATMUL_TENSOR, "volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_tn"},
	{TFH_FAMILY_MATMUL_TENSOR, "ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_stages_64x3_tn"},
	{TFH_FAMILY_MATMUL_TENSOR,
	 "sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize64x64x16_stage3_warpsize2x2x1_tensor16x8x8_kernel"},
	{TFH_FAMILY_MATMUL_PLAIN,
	 "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize32x32x8_stage3_warpsize1x2x1_ffma_aligna4_alignc4_execute_kernel__5x_cublas"},
	{TFH_FAMILY_MATMUL_TENSOR, "nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NTT"},
	{TFH_FAMILY_MATMUL,
	 "void splitKreduce_kernel<float, float, float, float, true, false, false>(cublasSplitKParams<float>, float const*)"},
	{TFH_FAMILY_REDUCTION,
	 "void dot_kernel<float, 128, 0, cublasDotParams<cublasGemvTensorStridedBatched<float const>, float> >(cublasDotParams<float>)"},
	/* CUTLASS */
	{TFH_FAMILY_MATMUL_TENSOR,
	 "void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_64x64_32x6_tn_align4>(cutlass_80_tensorop_s1688gemm_64x64_32x6_tn_align4::Params)"},
	{TFH_FAMILY_MATMUL_PLAIN,
	 "void cutlass::Kernel2<cutlass_80_simt_sgemm_128x128_8x4_nn_align1>(cutlass_80_simt_sgemm_128x128_8x4_nn_align1::Params)"},
	{TFH_FAMILY_ATTENTION,
	 "fmha_cutlassF_bf16_aligned_64x128_rf_sm80(PyTorchMemEffAttention::AttentionKernel<cutlass::bfloat16_t>::Params)"},
	/* AMD: rocBLAS and hipBLASLt, with and without matrix instructions; MIOpen; serving */
	{TFH_FAMILY_MATMUL_TENSOR,
	 "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x192x64_MI16x16x1_SN_LDSB1_AFC1_AFEM1"},
	{TFH_FAMILY_MATMUL, "Cijk_Ailk_Bljk_SB_MT64x64x8_SE_K1"},
	{TFH_FAMILY_CONVOLUTION, "Im3d2Col"},
	{TFH_FAMILY_ELEMENTWISE, "SubTensorOpWithCastTensor1d"},
	{TFH_FAMILY_ATTENTION, "sage_fwd"},
	{TFH_FAMILY_COPY,
	 "void vllm::reshape_and_cache_flash_kernel<__hip_bfloat16, __hip_bfloat16, (vllm::Fp8KVCacheDataType)0>(__hip_bfloat16 const*)"},
	/* cuDNN */
	{TFH_FAMILY_CONVOLUTION_PLAIN, "volta_scudnn_128x64_relu_interior_nn_v1"},
	{TFH_FAMILY_CONVOLUTION_PLAIN,
	 "void implicit_convolve_sgemm<float, float, 1024, 6, 7, 3, 3, 5, 1, false, true, true>(int, int, float const*)"},
	{TFH_FAMILY_CONVOLUTION_PLAIN,
	 "void cudnn::cnn::wgrad_alg0_engine<float, 128, 6, 7, 3, 3, 5, false, 512>(int, float const*, kernel_grad_params)"},
	{TFH_FAMILY_CONVOLUTION_TENSOR,
	 "turing_fp16_s1688cudnn_fp16_128x128_ldg8_relu_f2f_exp_small_nhwc_tn_v1"},
	{TFH_FAMILY_CONVOLUTION_TENSOR,
	 "sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nchw_tilesize128x128x16_stage4_warpsize2x2x1_g1_tensor16x8x8_execute_kernel_cudnn"},
	{TFH_FAMILY_NORMALISATION,
	 "void cudnn::bn_bw_1C11_kernel_new<float, float, float2, 512, true, 1>(float, cudnnTensorStruct, float const*)"},
	{TFH_FAMILY_LAYOUT,
	 "void cudnn::ops::nchwToNhwcKernel<float, float, float, true, false, (cudnnKernelDataType_t)0>(int, float const*)"},
	{TFH_FAMILY_ATTENTION,
	 "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_6_128x64x64_4x1x1_cga1x1x1_kernel0_0"},
	/* PyTorch */
	{TFH_FAMILY_ELEMENTWISE, ELEMENTWISE("at::native::AddFunctor<float>")},
	{TFH_FAMILY_ELEMENTWISE,
	 "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_10AddFunctorIfEENS_6detail5ArrayIPcLi3EEEEEviT0_T1_"},
	{TFH_FAMILY_COPY,
	 ELEMENTWISE(
		 "at::native::(anonymous namespace)::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#2}")},
	{TFH_FAMILY_REDUCTION,
	 "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float, float>, unsigned int> >(int)"},
	{TFH_FAMILY_REDUCTION,
	 "void (anonymous namespace)::softmax_warp_forward<float, float, float, 10, true>(float*, float const*, int)"},
	{TFH_FAMILY_NORMALISATION,
	 "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>(int, float, float const*)"},
	{TFH_FAMILY_LAYOUT,
	 "void at::native::(anonymous namespace)::CatArrayBatchedCopy<float, unsigned int, 2, 128, 1>(float*)"},
	{TFH_FAMILY_EMBEDDING,
	 "void at::native::(anonymous namespace)::indexSelectLargeIndex<float, long, unsigned int, 2, 2, -2, true>(int)"},
	{TFH_FAMILY_EMBEDDING,
	 "void split_embedding_backward_codegen_rowwise_adagrad_unweighted_kernel_cta_per_row_1<float, float>(int)"},
	{TFH_FAMILY_POOLING,
	 "void at::native::(anonymous namespace)::max_pool_forward_nchw<float, float>(int, float const*)"},
	{TFH_FAMILY_SORT,
	 "void cub::DeviceRadixSortOnesweepKernel<cub::DeviceRadixSortPolicy<long, int, int>::Policy800, false>(int*)"},
	{TFH_FAMILY_OPTIMIZER,
	 "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::FusedOptimizerTensorListMetadata<4>, at::native::(anonymous namespace)::FusedAdamMathFunctor<float, 4> >(int)"},
	{TFH_FAMILY_ATTENTION,
	 "void pytorch_flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<Flash_bwd_kernel_traits<64, 128, 128, 8> >(pytorch_flash::Flash_bwd_params)"},
	/* TorchInductor names kernels after the operators around, too */
	{TFH_FAMILY_ELEMENTWISE,
	 "triton_poi_fused__scaled_dot_product_attention_addmm_convolution_7"},
	{TFH_FAMILY_REDUCTION, "triton_per_fused_native_layer_norm_add_3"},
	{TFH_FAMILY_REDUCTION, "triton_red_fused__log_softmax_nll_loss_forward_12"},
	{TFH_FAMILY_MATMUL, "triton_tem_fused_addmm_relu_4"},
	{TFH_FAMILY_CONVOLUTION, "triton_tem_fused_convolution_2"},
	{TFH_FAMILY_OPTIMIZER, "triton_for_fused_1"},
	/* TensorFlow, Eigen, XLA, tinygrad */
	{TFH_FAMILY_COPY, EIGEN("Eigen::TensorConversionOp<Eigen::half, int>")},
	{TFH_FAMILY_ELEMENTWISE,
	 EIGEN("Eigen::TensorCwiseUnaryOp<Eigen::internal::scalar_inverse_op<float>, int>")},
	{TFH_FAMILY_ELEMENTWISE,
	 "void tensorflow::functor::FillPhiloxRandomKernelLaunch<int>(unsigned long long const*)"},
	{TFH_FAMILY_LAYOUT,
	 "void tensorflow::functor::SwapDimension1And2InTensor3UsingTiles<unsigned int, 256, 32, 32, false>(int)"},
	{TFH_FAMILY_OPTIMIZER,
	 "void tensorflow::functor::ApplyAdamKernel<float>(int, float*, float*)"},
	{TFH_FAMILY_REDUCTION, "input_reduce_fusion_12"},
	{TFH_FAMILY_ELEMENTWISE, "loop_multiply_add_fusion_3"},
	{TFH_FAMILY_MATMUL, "gemm_fusion_dot_general_4"},
	{TFH_FAMILY_EMBEDDING, "input_scatter_fusion"},
	{TFH_FAMILY_ELEMENTWISE, "E_4194304_32_4n1"},
	{TFH_FAMILY_OTHER, "r_8_16_2_4_1024"},
	{TFH_FAMILY_COMMUNICATION,
	 "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"},
	/* what parameters are called says nothing, nor do names that nobody gave by rule */
	{TFH_FAMILY_OTHER,
	 "void work(embedding_table, gemm_params, at::native::AddFunctor<float>)"},
	{TFH_FAMILY_OTHER, "forward"},
	{TFH_FAMILY_OTHER, "fusion_17"},
	{TFH_FAMILY_OTHER, ""},
};

static void names_tell(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		enum tfh_kernel_family found = tfh_kernel_family(rows[i].name);
		if (found != rows[i].family)
			fail_msg("%s: %s, not %s", rows[i].name, tfh_family_name(found),
				 tfh_family_name(rows[i].family));
	}
}

static void any_text(void **state)
{
	static char text[5000];
	uint32_t seed = 1;
	(void)state;

	for (int round = 0; round < 300; round++) {
		for (size_t i = 0; i + 1 < sizeof(text); i++) {
			seed = seed * 1664525 + 1013904223;
			text[i] = "<>(){}_Zabcgem*^#:, 0123456789\x80"[seed >> 27];
		}
		text[(seed >> 8) % sizeof(text)] = '\0';
		assert_true(tfh_kernel_family(text) < TFH_FAMILY_COUNT);
	}
	for (int f = 0; f < TFH_FAMILY_COUNT; f++)
		for (int g = 0; g < f; g++)
			assert_string_not_equal(tfh_family_name((enum tfh_kernel_family)f),
						tfh_family_name((enum tfh_kernel_family)g));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_tell),
		cmocka_unit_test(any_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
