// A runtime of Ascend's shape with two devices.
#include <stddef.h>
#include <stdint.h>

#ifndef CHIP
#define CHIP "Ascend910B3"
#endif
#ifndef LEFT
#define LEFT ((size_t)60 << 30)
#endif

static int started;
static int current = -1;

int aclrtGetVersion(int *major, int *minor, int *patch) {
    *major = 1, *minor = 14, *patch = 0;
    return 0;
}
int aclInit(const char *settings) {
    if (settings) return 100000;
    return started++ ? 100002 : 0;
}
int aclrtGetDeviceCount(uint32_t *count) {
    *count = 2;
    return started ? 0 : 107000;
}
const char *aclrtGetSocName(void) { return CHIP; }
int aclrtSetDevice(int device) {
    current = device;
    return 0;
}
int aclrtResetDevice(int device) {
    current = -1;
    return device < 2 ? 0 : 107001;
}
#ifndef NO_MEMORY
int aclrtGetMemInfo(int kind, size_t *left, size_t *all) {
    *left = LEFT, *all = (size_t)64 << 30;
    return kind == 1 && current >= 0 ? 0 : 107002;
}
#endif
