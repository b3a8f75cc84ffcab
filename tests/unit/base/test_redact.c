/* Secrets are redacted and nothing else is: options in every form, variables, scripts, JSON, YAML,
 * headers, URLs and keys recognised by their format, each beside something that only resembles
 * it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/redact.h"

#define R TFH_REDACTED
#define HEX40 "0123456789abcdef0123456789abcdef01234567"

/* The last argument, after the one before it, as it is recorded; NULL: unchanged. */
static const struct {
	const char *before, *text, *told;
} cases[] = {
	/* options */
	{"--token", "abc", R},
	{"--token", "-TOK", R},
	{"--token", "--verbose", NULL},
	{"-token", "abc", R},
	{"", "--api-key=x y,z", "--api-key=" R},
	{"", "--apiKey=x", "--apiKey=" R},
	{"", "--HFToken=x", "--HFToken=" R},
	{"--pwd", "x", R},
	{"--passphrase", "x", R},
	{"--auth", "x", R},
	{"--credential", "x", R},
	{"--db_pass", "x", R},
	{"--wandb.key", "x", R},
	{"--github-authtoken", "x", R},
	{"", "+trainer.logger.api_key=x", "+trainer.logger.api_key=" R},
	{"", "-pHunter2", "-p" R},
	{"", "-pPASS", "-p" R},
	{"", "-p8080", NULL},
	{"", "-pthread", NULL},
	{"-p", "8080", NULL},
	{"-u", "user:pw", "user:" R},
	{"-u", "train.py", NULL},
	{"-u", "1000:1000", NULL},
	{"", "--user=me:pw", "--user=me:" R},
	{"--user", "me", NULL},
	{"", "--env=API_KEY=X", "--env=API_KEY=" R},
	{"-e", "API_KEY=X", "API_KEY=" R},
	{"", "--hparams=lr=3,token=X,steps=5", "--hparams=lr=3,token=" R ",steps=5"},
	{"", "--hparams=password=a,b", "--hparams=password=" R},
	{"", "PGPASSWORD=x", "PGPASSWORD=" R},
	/* not secrets */
	{"--tokenizer", "gpt2", NULL},
	{"", "--tokenizer=gpt2", NULL},
	{"--num-tokens", "5", NULL},
	{"--max_tokens", "5", NULL},
	{"--max-token", "5", NULL},
	{"--pad-token", "<pad>", NULL},
	{"--eos_token_id", "2", NULL},
	{"--token-type", "bpe", NULL},
	{"--keyframes", "3", NULL},
	{"--key-dim", "64", NULL},
	{"--sort-key", "length", NULL},
	{"--num-key-value-heads", "8", NULL},
	{"--monkey", "x", NULL},
	{"--keyboard", "x", NULL},
	{"--secretary", "x", NULL},
	{"--passes", "2", NULL},
	{"--bypass", "x", NULL},
	{"--forward-pass", "x", NULL},
	{"--author", "x", NULL},
	{"--signal", "x", NULL},
	{"--pin-memory", "x", NULL},
	{"--token-file", "/run/token", NULL},
	{"", "--lr=0.1", NULL},
	{"", "model=std::vector", NULL},
	{"", "", NULL},
	/* scripts */
	{"-c", "train --password=X --lr 3", "train --password=" R " --lr 3"},
	{"-c", "train --password X --lr 3", "train --password " R " --lr 3"},
	{"-c", "export HF_TOKEN='a b'; python x.py", "export HF_TOKEN=" R "; python x.py"},
	{"-c", "mysql -uroot -pS3cret db", "mysql -uroot -p" R " db"},
	{"-c", "login(token=\"x\\\"y\", lr=3)", "login(token=" R ", lr=3)"},
	{"-c", "print(max_tokens=5, key_dim=3)", NULL},
	/* JSON and YAML */
	{"", "{\"lr\": 3, \"password\": \"a b\", \"n\": 1}",
	 "{\"lr\": 3, \"password\": " R ", \"n\": 1}"},
	{"", "{\"api_keys\":[1,{\"a\":2}],\"n\":1}", "{\"api_keys\":[1,{\"a\":2}],\"n\":1}"},
	{"", "{\"secrets\":[1,{\"a\":2}],\"n\":1}", "{\"secrets\":" R ",\"n\":1}"},
	{"", "{\\\"token\\\": \\\"a b\\\", \\\"n\\\": 1}", "{\\\"token\\\": " R ", \\\"n\\\": 1}"},
	{"", "lr: 3\npassword: hush\nsteps: 4", "lr: 3\npassword: " R "\nsteps: 4"},
	{"", "{'token': 'x', 'lr': 3}", "{'token': " R ", 'lr': 3}"},
	/* headers and URLs */
	{"-H", "Authorization: Bearer abc", "Authorization: " R},
	{"-c", "curl -H 'Authorization: Basic abc' http://h/",
	 "curl -H 'Authorization: " R "' http://h/"},
	{"-H", "X-Api-Key: abc", "X-Api-Key: " R},
	{"-H", "Accept: text/html", NULL},
	{"", "https://user:pw@h/x", "https://user:" R "@h/x"},
	{"", "https://user:p@w@h/x", "https://user:" R "@h/x"},
	{"", "--proxy=http://tok@h:80", "--proxy=http://" R "@h:80"},
	{"", "ssh://git@h/x", NULL},
	{"", "https://h/x?a=1&b=2", NULL},
	{"", "https://h/x?se=1&sig=ab%2F&b=2", "https://h/x?se=1&sig=" R "&b=2"},
	{"", "s3://b/x?X-Amz-Credential=C&X-Amz-Signature=S",
	 "s3://b/x?X-Amz-Credential=" R "&X-Amz-Signature=" R},
	{"", "postgres://u:p@db/x", "postgres://u:" R "@db/x"},
	/* by their looks */
	{"", "AKIAIOSFODNN7EXAMPLE", R},
	{"", "--x=AKIAIOSFODNN7EXAMPLE", "--x=" R},
	{"", "hf_AbCdEfGhIjKlMnOpQrStUvWxYz012345", R},
	{"", "hf_transfer", NULL},
	{"", "hf_a_name_of_a_model_and_more", NULL},
	{"", "ghp_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789", R},
	{"", "sk-proj-AbCdEfGh_IjKlMnOp0123456789", R},
	{"", "sk-learn-pipeline-with-a-long-name", NULL},
	{"", "xoxb-123456789012-abcdef", R},
	{"", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVm", R},
	{"", HEX40, R},
	{"--revision", HEX40, NULL},
	{"", "--commit=" HEX40, NULL},
	{"", HEX40 "0", NULL},
	{"", "-----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY-----\nx", R "\nx"},
	{"", "-----BEGIN CERTIFICATE-----", NULL},
};

static void arguments(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *argv[] = {(char *)"x", (char *)cases[i].before, (char *)cases[i].text, NULL};
		const char *want = cases[i].told ? cases[i].told : cases[i].text;
		const char *got = tfh_redact_arg(argv, 2);
		if (strcmp(got, want))
			print_error("%s %s: %s, not %s\n", cases[i].before, cases[i].text, got,
				    want);
		assert_string_equal(got, want);
		if (!cases[i].told)
			assert_ptr_equal(got, cases[i].text);
	}
}

static void environment(void **state)
{
	static const char *const told[] = {"CUDA_VISIBLE_DEVICES",
					   "NCCL_DEBUG",
					   "NCCL_IB_HCA",
					   "NCCL_SOCKET_IFNAME",
					   "TF_CPP_MIN_LOG_LEVEL",
					   "TF_CONFIG",
					   "TF_XLA_FLAGS",
					   "TF_FORCE_GPU_ALLOW_GROWTH",
					   "XLA_FLAGS",
					   "OMP_NUM_THREADS",
					   "RANK",
					   "SLURM_PROCID",
					   "TFHOOK_CUPTI",
					   "LD_PRELOAD",
					   "TORCH_NCCL_BLOCKING_WAIT",
					   "OMPI_COMM_WORLD_RANK"};
	static const char *const kept[] = {"NCCL_AUTH",
					   "NCCL_API_KEY",
					   "NCCL_PLUGIN_OPTS",
					   "TF_CREDENTIAL",
					   "TF_VAR_db",
					   "TF_TOKEN_app_terraform_io",
					   "TF_CLI_ARGS",
					   "TF_LOG_PATH",
					   "HOROVOD_SECRET_KEY",
					   "PMIX_SECURITY_MODE",
					   "CUDA_LICENSE_KEY",
					   "HOME",
					   "USER",
					   "PATH",
					   "RANKS",
					   "AWS_PROFILE",
					   "DATABASE_URL",
					   "SLURM_JWT",
					   "TFHOOK_TOKEN",
					   "PMI_SECURITY",
					   "RAN"};

	(void)state;
	for (size_t i = 0; i < sizeof(told) / sizeof(told[0]); i++)
		assert_true(tfh_env_recorded(told[i], strlen(told[i])));
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		assert_false(tfh_env_recorded(kept[i], strlen(kept[i])));
	assert_string_equal(tfh_redact_entry("TF_CONFIG={\"token\": \"x\", \"n\": 1}"),
			    "TF_CONFIG={\"token\": " R ", \"n\": 1}");
	assert_string_equal(tfh_redact_entry("XLA_FLAGS=--a --b=https://u:p@h"),
			    "XLA_FLAGS=--a --b=https://u:" R "@h");
}

/* Whatever follows a secret, it is hidden, and no text grows beyond what redaction adds. */
static void any_text(void **state)
{
	static const char *const forms[] = {
		"--token=%s",	   "--a=1,password=%s", "{\"api_key\": \"%s\"}",   "secret: %s",
		"https://u:%s@h/", "x --auth %s y",	"Authorization: Bearer %s"};
	static const char set[] = "aZ0_-.=:,;&/\\\"'{}[]() \n\t@#";
	uint64_t seed = 88172645463325252u;

	(void)state;
	for (int round = 0; round < 7000; round++) {
		char noise[24], middle[64], whole[128];
		size_t n = 0, form = (size_t)round % (sizeof(forms) / sizeof(forms[0]));
		for (; n < sizeof(noise) - 1; n++) {
			seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
			noise[n] = set[(seed >> 32) % (sizeof(set) - 1)];
		}
		noise[n] = '\0';
		snprintf(middle, sizeof(middle), forms[form], "XPLANTEDX");
		snprintf(whole, sizeof(whole), "%s %s", middle, noise);
		char *argv[] = {(char *)"x", whole, NULL};
		const char *told = tfh_redact_arg(argv, 1);
		assert_null(strstr(told, "PLANTED"));
		/* Noise alone: no crash, and a text no longer than it may get. */
		char *alone[] = {(char *)"x", noise, NULL};
		assert_true(strlen(tfh_redact_arg(alone, 1)) < 24 * sizeof(R));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arguments),
		cmocka_unit_test(environment),
		cmocka_unit_test(any_text),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
