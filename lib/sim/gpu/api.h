/*
 * How an exported name is made from its implementation:
 *   SIM_API(symbol, need, implementation, (parameters), (arguments))
 * The implementation gets the struct sim_call first. SIM_API_PT also makes the per-thread twin
 * `symbol`+`suffix`, which differs only in what stream 0 means.
 */
#ifndef TFH_SIM_GPU_API_H
#define TFH_SIM_GPU_API_H

#include "sim/gpu/sim.h"

#define SIM_EXPORTED __attribute__((visibility("default")))
#define SIM_TAIL(...) , ##__VA_ARGS__

#define SIM_API_AS(sym, pt, need, impl, params, args)                                              \
	SIM_EXPORTED CUresult sym params;                                                          \
	CUresult sym params                                                                        \
	{                                                                                          \
		struct sim_call c_;                                                                \
		CUresult r_ = sim_enter(&c_, #sym, need, pt);                                      \
		return sim_leave(&c_, r_ ? r_ : impl(&c_ SIM_TAIL args));                          \
	}
#define SIM_API(sym, need, impl, params, args) SIM_API_AS(sym, false, need, impl, params, args)
#define SIM_API_PT(sym, suffix, need, impl, params, args)                                          \
	SIM_API_AS(sym, false, need, impl, params, args)                                           \
	SIM_API_AS(sym##suffix, true, need, impl, params, args)

#endif
