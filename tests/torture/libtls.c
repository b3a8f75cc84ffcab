/* A library that takes most of what the loader keeps of static TLS for libraries opened late. */
__thread char tls_block[1024] __attribute__((tls_model("initial-exec")));

char *tls_touch(void);

char *tls_touch(void)
{
	tls_block[0]++;
	return tls_block;
}
