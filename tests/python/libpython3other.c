/* Looks to the recorder like an interpreter of a version that does not exist yet. */
unsigned long Py_Version = 0x03630000; /* 3.99 */
char _PyRuntime[64] = "xdebugpy", PyCode_Type[64];

#define NAMED(name)                                                                                \
	void *name(void);                                                                          \
	void *name(void)                                                                           \
	{                                                                                          \
		return 0;                                                                          \
	}
NAMED(PyGILState_GetThisThreadState)
NAMED(PyThreadState_GetUnchecked)
NAMED(Py_IsFinalizing)
NAMED(PyInterpreterState_Head)
NAMED(PyInterpreterState_Main)
