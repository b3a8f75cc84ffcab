/*
 * Which rank of which job this process is. The first launcher whose variables are complete decides.
 * Order and names: torchrun (pytorch torch/distributed/run.py), Horovod, Open MPI, MPICH and Intel,
 * Slurm (after those, because under `srun torchrun` SLURM_PROCID is the node's task), TF_CONFIG,
 * Kubernetes.
 */
#include "record/run/rundir.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/environ.h"

struct launcher {
	const char *name, *rank, *world, *local;
};

static const struct launcher launchers[] = {
	{"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK"},
	{"horovod", "HOROVOD_RANK", "HOROVOD_SIZE", "HOROVOD_LOCAL_RANK"},
	{"openmpi", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
	{"mvapich", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK"},
	{"pmi", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"},
	{"slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"},
	{"slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID"},
};

static int32_t number(const struct tfh_env *env, const char *name)
{
	const char *text = tfh_env_in(env, name);
	char *end;
	long n;

	if (!text || !*text)
		return -1;
	n = strtol(text, &end, 10);
	return *end || n < 0 || n > 1 << 24 ? -1 : (int32_t)n;
}

/* A value that may become part of a file name. */
static void word(char *out, size_t size, const char *text)
{
	size_t n = 0;

	for (; text && *text && n + 1 < size; text++) {
		bool good = (*text >= '0' && *text <= '9') || (*text >= 'a' && *text <= 'z') ||
			    (*text >= 'A' && *text <= 'Z') || *text == '-' || *text == '_' ||
			    (*text == '.' && n);

		out[n++] = good ? *text : '_';
	}
	out[n] = '\0';
}

/* {"cluster": {"chief": [..], "worker": [..], ..}, "task": {"type": "worker", "index": 1}}: a
 * minimal parser for the two fields that give the rank. Chief or master come first, then the
 * workers. */
static int32_t tf_config_rank(const char *text)
{
	const char *task = text ? strstr(text, "\"task\"") : NULL;
	const char *index = task ? strstr(task, "\"index\"") : NULL;
	const char *type = task ? strstr(task, "\"type\"") : NULL;
	bool has_chief;
	long n;

	if (!index || !type)
		return -1;
	index = strchr(index, ':');
	type = strchr(type, ':');
	if (!index || !type)
		return -1;
	index += strspn(index, ": \"");
	type += strspn(type, ": \"");
	n = strtol(index, NULL, 10);
	if (n < 0 || n > 1 << 24)
		return -1;
	if (!strncmp(type, "chief", 5) || !strncmp(type, "master", 6))
		return 0;
	if (strncmp(type, "worker", 6))
		return -1;
	has_chief = strstr(text, "\"chief\"") || strstr(text, "\"master\"");
	return (int32_t)n + has_chief;
}

static void detect_job(struct tfh_job_rank *r, const struct tfh_env *env)
{
	static const char *const names[] = {"PBS_JOBID", "LSB_JOBID", "TRAINING_JOB_NAME"};
	const char *job = tfh_env_in(env, "SLURM_JOB_ID"), *step = tfh_env_in(env, "SLURM_STEP_ID");
	char both[128];

	if (job) {
		snprintf(both, sizeof(both), "%s.%s", job, step ? step : "batch");
		word(r->job, sizeof(r->job), both);
		word(r->restart, sizeof(r->restart), tfh_env_in(env, "SLURM_RESTART_COUNT"));
	}
	job = tfh_env_in(env, "TORCHELASTIC_RUN_ID");
	if (!r->job[0] && job && *job && strcmp(job, "none"))
		word(r->job, sizeof(r->job), job);
	if (tfh_env_in(env, "TORCHELASTIC_RESTART_COUNT"))
		word(r->restart, sizeof(r->restart), tfh_env_in(env, "TORCHELASTIC_RESTART_COUNT"));
	for (size_t i = 0; !r->job[0] && i < sizeof(names) / sizeof(names[0]); i++)
		word(r->job, sizeof(r->job), tfh_env_in(env, names[i]));
	if (!strcmp(r->restart, "0"))
		r->restart[0] = '\0';
}

void tfh_rank_detect(struct tfh_job_rank *r, const struct tfh_options *options,
		     const struct tfh_env *env)
{
	memset(r, 0, sizeof(*r));
	r->rank = (int32_t)tfh_opt_int(options, TFH_OPT_RANK);
	r->world = (int32_t)tfh_opt_int(options, TFH_OPT_WORLD_SIZE);
	r->local_rank = (int32_t)tfh_opt_int(options, TFH_OPT_LOCAL_RANK);
	word(r->job, sizeof(r->job), tfh_opt_str(options, TFH_OPT_JOB));
	r->source = r->rank >= 0 ? "TFHOOK_RANK" : NULL;
	for (size_t i = 0; r->rank < 0 && i < sizeof(launchers) / sizeof(launchers[0]); i++) {
		const struct launcher *l = &launchers[i];
		int32_t rank = number(env, l->rank), world = number(env, l->world);

		if (rank < 0 || world <= rank)
			continue;
		r->rank = rank;
		r->world = world;
		r->local_rank = number(env, l->local);
		r->source = l->name;
	}
	if (r->rank < 0) {
		r->rank = tf_config_rank(tfh_env_in(env, "TF_CONFIG"));
		if (r->rank >= 0)
			r->source = "tf_config";
	}
	if (r->rank < 0) {
		r->rank = number(env, "JOB_COMPLETION_INDEX");
		if (r->rank >= 0)
			r->source = "kubernetes";
	}
	if (!r->job[0])
		detect_job(r, env);
}
