/* Entry point of the `tfhook` command; everything else is in a library that the tests use, too. */
#include "cli/cli.h"

int main(int argc, char **argv)
{
	return tfh_cli(argc, argv);
}
