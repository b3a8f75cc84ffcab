#include "base/fn.h"

const struct tfh_fn_info tfh_fn_table[TFH_FN_COUNT] = {
	[TFH_FN_NONE] = {"", 0, 0, 0, 0},
#define CUDA_FN(name, family, args, dir, props, ...)                                               \
	[TFH_FN_##name] = {#name, TFH_FAM_##family, TFH_ARGS_##args, TFH_DIR_##dir, props},
#include "base/cuda_api.def"
#undef CUDA_FN
#define TF_FN(name, text, family, args, props, ...)                                                \
	[TFH_FN_##name] = {text, TFH_FAM_##family, TFH_ARGS_##args, TFH_DIR_NONE, props},
#include "base/tf_api.def"
#undef TF_FN
#define NCCL_FN(name, args, props, ...)                                                            \
	[TFH_FN_##name] = {#name, TFH_FAM_COMMUNICATION, TFH_ARGS_##args, TFH_DIR_NONE, props},
#include "base/nccl_api.def"
#undef NCCL_FN
};
