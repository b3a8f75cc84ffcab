/*
 * Targets of the entries in entry.S: two functions for each row of base/cuda_api.def. first_*()
 * finds the real function; record_*() (some are in host.c) calls it and records the call.
 */
#include "hook/driver/note.h"

#define KIND(args)                                                                                 \
	(TFH_ARGS_##args == TFH_ARGS_ALLOC || TFH_ARGS_##args == TFH_ARGS_FREE ? TFT_ALLOC         \
									       : TFT_CALL)

#define FIRST(name, params, argv)                                                                  \
	CUresult hook_##name params;                                                               \
	CUresult first_##name params __attribute__((cold));                                        \
	CUresult first_##name params                                                               \
	{                                                                                          \
		bool record;                                                                       \
		CUresult(*real) params =                                                           \
			(CUresult(*) params)tfh_real_for(TFH_FN_##name, CALLER, &record);          \
		if (!real)                                                                         \
			return tfh_no_driver();                                                    \
		if (record)                                                                        \
			return hook_##name argv;                                                   \
		unsigned before = tfh_forward(__builtin_frame_address(0));                         \
		CUresult result = real argv;                                                       \
		tfh_forwarded(before);                                                             \
		return result;                                                                     \
	}

#define CUDA_FN_BY_HAND(...)
#define CUDA_FN_HOST(name, family, args, dir, properties, version, params, argv, ...)              \
	FIRST(name, params, argv)
#define CUDA_FN(name, family, args, dir, properties, version, params, argv, open_arg, note)        \
	FIRST(name, params, argv)                                                                  \
	CUresult record_##name params __attribute__((flatten));                                    \
	CUresult record_##name params                                                              \
	{                                                                                          \
		uint64_t begin;                                                                    \
		struct tfh_self *self = tfh_enter(TFH_FN_##name, U64(open_arg), &begin);           \
		CUresult(*real) params = (CUresult(*) params)tfh_real[TFH_FN_##name];              \
		if (tfh_unlikely(!self))                                                           \
			return real argv;                                                          \
		CUresult result = real argv;                                                       \
		self = tfh_back(self, TFH_FN_##name, begin);                                       \
		if (tfh_unlikely(!self))                                                           \
			return result;                                                             \
		struct tfh_call call = {                                                           \
			self, begin, TFH_FN_##name, KIND(args), properties, result};               \
		note;                                                                              \
		return result;                                                                     \
	}

/* first_*() is reached by a jump, so this is the program's return address. */
#define CALLER __builtin_return_address(0)

#pragma GCC visibility push(hidden)
#include "base/cuda_api.def"
#pragma GCC visibility pop

/* entry.S has copies of these. */
_Static_assert(TFH_FN_SYNC_COPY == 1 && TFH_FN_PTDS == 2 && TFH_FN_TRIGGER == 4 &&
		       TFH_FN_ALWAYS == 8,
	       "entry.S");
_Static_assert(TFH_MODE_ON < TFH_MODE_OFF && TFH_MODE_OFF == 3 && TFH_MODE_DEAD == 4, "entry.S");
