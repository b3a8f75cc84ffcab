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
#define REAL(name, params) ((CUresult(*) params)tfh_real[TFH_FN_##name])

/* Everything but a usual call is in a separate function, which is reached by a jump with the
 * program's arguments still in place. So a usual call need not save them before it passes them
 * on. */
#define UNUSUAL(function, name, args, properties, all_params, params, argv, open_arg, place,       \
		before, note)                                                                      \
	__attribute__((cold, noinline)) CUresult function all_params                               \
	{                                                                                          \
		struct tfh_call call = {.fn = TFH_FN_##name,                                       \
					.kind = KIND(args),                                        \
					.props = properties | TFH_CALL_UNUSUAL};                   \
		call.self = tfh_enter_slow(TFH_FN_##name, U64(open_arg), place, &call.begin);      \
		if (!call.self)                                                                    \
			return REAL(name, params) argv;                                            \
		before;                                                                            \
		call.result = REAL(name, params) argv;                                             \
		note;                                                                              \
		return call.result;                                                                \
	}
#define USUAL(name, args, properties, unusual, params, argv, open_arg, before, note)               \
	CUresult record_##name params __attribute__((flatten));                                    \
	CUresult record_##name params                                                              \
	{                                                                                          \
		struct tfh_call call = {.self = tfh_here(),                                        \
					.fn = TFH_FN_##name,                                       \
					.kind = KIND(args),                                        \
					.props = properties};                                      \
		if (tfh_unlikely(!tfh_set_up(call.self)))                                          \
			return unusual;                                                            \
		call.begin = tfh_ticks();                                                          \
		if (tfh_unlikely(!tfh_enter_usual(call.self, TFH_FN_##name, U64(open_arg), PLACE,  \
						  call.begin)))                                    \
			return unusual;                                                            \
		before;                                                                            \
		call.result = REAL(name, params) argv;                                             \
		note;                                                                              \
		return call.result;                                                                \
	}
#define CUDA_FN(name, family, args, dir, properties, version, params, argv, open_arg, note)        \
	FIRST(name, params, argv)                                                                  \
	CUresult unusual_##name params;                                                            \
	UNUSUAL(unusual_##name, name, args, properties, params, params, argv, open_arg, PLACE,     \
		(void)0, note)                                                                     \
	USUAL(name, args, properties, unusual_##name argv, params, argv, open_arg, (void)0, note)

/* A launch has arguments on the stack. If a jump handed them over, the compiler would copy them to
 * registers at the beginning of every call. So the unusual path is called, and the place is a
 * further argument. */
#define WITH_PLACE(...) (__VA_ARGS__, struct tfh_record_frame place)
#define AND_PLACE(...) (__VA_ARGS__, PLACE)
#define CUDA_FN_LAUNCH(name, family, args, dir, properties, version, params, argv, open_arg, note) \
	FIRST(name, params, argv)                                                                  \
	static CUresult placed_##name WITH_PLACE params;                                           \
	UNUSUAL(placed_##name, name, args, properties, WITH_PLACE params, params, argv, open_arg,  \
		place, SHAPE_OF_LAUNCH, note)                                                      \
	CUresult unusual_##name params;                                                            \
	__attribute__((cold)) CUresult unusual_##name params                                       \
	{                                                                                          \
		return placed_##name AND_PLACE argv;                                               \
	}                                                                                          \
	USUAL(name, args, properties, placed_##name AND_PLACE argv, params, argv, open_arg,        \
	      SHAPE_OF_LAUNCH, note)
#define SHAPE_OF_LAUNCH                                                                            \
	const struct tfh_shape shape = TFH_SHAPE(gridDimX, gridDimY, gridDimZ, blockDimX,          \
						 blockDimY, blockDimZ, sharedMemBytes)

#define PLACE                                                                                      \
	((struct tfh_record_frame){tfh_stack(), (uint64_t)(uintptr_t)__builtin_return_address(0)})

/* first_*() is reached by a jump, so this is the program's return address. */
#define CALLER __builtin_return_address(0)

#pragma GCC visibility push(hidden)
#include "base/cuda_api.def"
#pragma GCC visibility pop

/* entry.S has copies of these. */
_Static_assert(TFH_FN_SYNC_COPY == 1 && TFH_FN_PTDS == 2 && TFH_FN_TRIGGER == 4 &&
		       TFH_FN_ALWAYS == 8,
	       "entry.S");
_Static_assert(TFH_MODE_ON == 2 && TFH_MODE_OFF == 3 && TFH_MODE_DEAD == 4, "entry.S");
