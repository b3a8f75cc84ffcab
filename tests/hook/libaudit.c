/* An audit library that watches nothing: with one, the loader has little static TLS for preloads.
 */
unsigned int la_version(unsigned int version);
unsigned int la_version(unsigned int version)
{
	return version;
}
