#include "base/redact.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static const char *const secret_words[] = {"token", "key", "secret", "passw"};

/* A name that ends with an asterisk stands for all that begin with it. */
static const char *const told_names[] = {
	"TFHOOK*",
	"CUDA_*",
	"NVIDIA_VISIBLE_DEVICES",
	"NCCL_*",
	"TF_*",
	"XLA_*",
	"PYTHONUNBUFFERED",
	"PYTHONPATH",
	"LD_LIBRARY_PATH",
	"LD_PRELOAD",
	"OMP_NUM_THREADS",
	"MKL_NUM_THREADS",
	"DEV",
	"JIT",
	"SIM_*",
	"RANK",
	"WORLD_SIZE",
	"LOCAL_RANK",
	"LOCAL_WORLD_SIZE",
	"GROUP_RANK",
	"TORCHELASTIC_*",
	"HOROVOD_*",
	"OMPI_COMM_WORLD_*",
	"PMI_*",
	"PMIX_RANK",
	"SLURM_JOB_ID",
	"SLURM_STEP_ID",
	"SLURM_PROCID",
	"SLURM_NTASKS",
	"SLURM_LOCALID",
	"SLURM_NODEID",
	"SLURM_RESTART_COUNT",
	"JOB_COMPLETION_INDEX",
	"PBS_JOBID",
	"LSB_JOBID",
};

static bool contains(const char *text, size_t length, const char *word)
{
	size_t n = strlen(word);

	for (size_t i = 0; i + n <= length; i++)
		if (!strncasecmp(text + i, word, n))
			return true;
	return false;
}

/* token, key, secret, passw in it, case ignored */
static bool secret_name(const char *name, size_t length)
{
	for (size_t i = 0; i < sizeof(secret_words) / sizeof(secret_words[0]); i++)
		if (contains(name, length, secret_words[i]))
			return true;
	return false;
}

bool tfh_env_told(const char *name, size_t length)
{
	if (secret_name(name, length))
		return false;
	for (size_t i = 0; i < sizeof(told_names) / sizeof(told_names[0]); i++) {
		size_t n = strlen(told_names[i]);
		bool prefix = told_names[i][n - 1] == '*';
		if (prefix ? length >= n - 1 && !strncmp(name, told_names[i], n - 1)
			   : length == n && !strncmp(name, told_names[i], n))
			return true;
	}
	return false;
}

size_t tfh_told_length(char *const *argv, size_t i)
{
	size_t length = strlen(argv[i]);
	size_t name = strcspn(argv[i], "=");

	if (name < length)
		return secret_name(argv[i], name) ? name + 1 : length;
	if (i > 0 && argv[i][0] != '-' && argv[i - 1][0] == '-' && !strchr(argv[i - 1], '=') &&
	    secret_name(argv[i - 1], strlen(argv[i - 1])))
		return 0;
	return length;
}

const char *tfh_told_text(char *const *argv, size_t i)
{
	static char text[4096]; /* the recorder comes here on any stack */
	size_t told = tfh_told_length(argv, i), most = sizeof(text) - sizeof(TFH_REDACTED);

	if (told == strlen(argv[i]))
		return argv[i];
	snprintf(text, sizeof(text), "%.*s" TFH_REDACTED, (int)(told < most ? told : most),
		 argv[i]);
	return text;
}
