/* Entry of the `tfhook` command; everything else is in the library of the tests, too. */
#include "cli/cli.h"

int main(int argc, char **argv)
{
	return tfh_cli(argc, argv);
}
