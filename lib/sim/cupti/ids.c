/* Ids of objects in records, and functions that are not supported. */
#include "sim/cupti/sim_cupti.h"

CUPTI_API(cuptiGetContextId, (CUcontext ctx, uint32_t *id), (ctx, id))
{
	if (!id || !sim_cupti_driver())
		return CUPTI_ERROR_INVALID_PARAMETER;
	*id = sim_cupti_driver()->context_id(ctx);
	return *id ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_CONTEXT;
}

CUPTI_API(cuptiGetDeviceId, (CUcontext ctx, uint32_t *id), (ctx, id))
{
	if (!id || !sim_cupti_driver())
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (!sim_cupti_driver()->context_id(ctx))
		return CUPTI_ERROR_INVALID_CONTEXT;
	*id = sim_cupti_driver()->device_of(ctx);
	return CUPTI_SUCCESS;
}

CUPTI_API(cuptiGetStreamIdEx, (CUcontext ctx, CUstream s, uint8_t per_thread, uint32_t *id),
	  (ctx, s, per_thread, id))
{
	if (!id || !sim_cupti_driver())
		return CUPTI_ERROR_INVALID_PARAMETER;
	*id = sim_cupti_driver()->stream_id(ctx, s, per_thread);
	return *id ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_STREAM;
}

CUPTI_API(cuptiGetStreamId, (CUcontext ctx, CUstream s, uint32_t *id), (ctx, s, id))
{
	return do_cuptiGetStreamIdEx(ctx, s, 0, id);
}

CUPTI_API(cuptiGetGraphId, (CUgraph g, uint32_t *id), (g, id))
{
	if (!id || !sim_cupti_driver())
		return CUPTI_ERROR_INVALID_PARAMETER;
	*id = sim_cupti_driver()->graph_id(g);
	return *id ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}

CUPTI_API(cuptiGetGraphExecId, (CUgraphExec e, uint32_t *id), (e, id))
{
	if (!id || !sim_cupti_driver())
		return CUPTI_ERROR_INVALID_PARAMETER;
	*id = sim_cupti_driver()->exec_id(e);
	return *id ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}

CUPTI_API(cuptiGetGraphNodeId, (CUgraphNode n, uint64_t *id), (n, id))
{
	if (!id || !sim_cupti_driver())
		return CUPTI_ERROR_INVALID_PARAMETER;
	*id = sim_cupti_driver()->node_id(n);
	return *id ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}

CUPTI_API(cuptiDeviceSupported, (CUdevice d, int *yes), (d, yes))
{
	(void)d;
	if (!yes)
		return CUPTI_ERROR_INVALID_PARAMETER;
	*yes = 1;
	return CUPTI_SUCCESS;
}

CUPTI_API(cuptiComputeCapabilitySupported, (int major, int minor, int *yes), (major, minor, yes))
{
	(void)major;
	(void)minor;
	if (!yes)
		return CUPTI_ERROR_INVALID_PARAMETER;
	*yes = 2;
	return CUPTI_SUCCESS;
}

CUPTI_API(cuptiDeviceVirtualizationMode, (CUdevice d, int *mode), (d, mode))
{
	(void)d;
	if (!mode)
		return CUPTI_ERROR_INVALID_PARAMETER;
	*mode = 0;
	return CUPTI_SUCCESS;
}

/* Switches without an effect here: the fields they would fill stay 0. */
#define ACCEPTED(name)                                                                             \
	CUPTI_API(name, (uint8_t on), (on))                                                        \
	{                                                                                          \
		(void)on;                                                                          \
		return CUPTI_SUCCESS;                                                              \
	}
ACCEPTED(cuptiActivityEnableLatencyTimestamps)
ACCEPTED(cuptiActivityEnableLaunchAttributes)
ACCEPTED(cuptiActivityEnableDeviceGraph)
ACCEPTED(cuptiActivityEnableAllSyncRecords)
ACCEPTED(cuptiActivityEnableCudaEventDeviceTimestamps)

/* Functions that a client may look up and can do without. */
#define NOT_SUPPORTED(name)                                                                        \
	CUPTI_API(name, (void), ())                                                                \
	{                                                                                          \
		return CUPTI_ERROR_NOT_SUPPORTED;                                                  \
	}
NOT_SUPPORTED(cuptiActivityEnableHWTrace)
NOT_SUPPORTED(cuptiActivityEnableAllocationSource)
NOT_SUPPORTED(cuptiActivityConfigurePCSampling)
NOT_SUPPORTED(cuptiActivityConfigureUnifiedMemoryCounter)
NOT_SUPPORTED(cuptiGetAutoBoostState)
NOT_SUPPORTED(cuptiProfilerInitialize)
NOT_SUPPORTED(cuptiProfilerDeInitialize)
NOT_SUPPORTED(cuptiPCSamplingEnable)
NOT_SUPPORTED(cuptiPCSamplingDisable)
NOT_SUPPORTED(cuptiDeviceGetChipName)
NOT_SUPPORTED(cuptiEventGroupSetsCreate)
NOT_SUPPORTED(cuptiMetricGetIdFromName)
