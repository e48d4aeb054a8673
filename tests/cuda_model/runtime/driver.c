// libcuda: one context that is always current. What torch asks of the driver otherwise is not modelled, and says so.
#include <stddef.h>

static void *context;

int cuInit(unsigned flags) { return 0; }
int cuCtxGetCurrent(void **found) { return *found = &context, 0; }
int cuCtxSetCurrent(void *given) { return 0; }
int cuCtxPushCurrent(void *given) { return 0; }
int cuCtxPopCurrent(void **found) { return *found = &context, 0; }
int cuDeviceGet(int *device, int number) { return *device = number, 0; }
int cuDeviceGetAttribute(int *value, int attribute, int device) { return *value = 0; }
int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active) { return *flags = 0, *active = 1, 0; }
int cuDevicePrimaryCtxRetain(void **found, int device) { return *found = &context, 0; }
int cuGetErrorString(int error, const char **text) { return *text = "simulated", 0; }
int cuPointerGetAttribute(void *value, int attribute, unsigned long long pointer) { return 1; }
